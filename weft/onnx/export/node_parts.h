// What the writers of single operators share: a node's parts, by their names in the ONNX graph.
#pragma once

#include <string>
#include <vector>

#include "weft/onnx/export/emitter.h"

namespace weft::onnx {

inline const Node& node_of(Emitter& emitter, NodeId id) { return emitter.graph().node(id); }
inline ValueId input_of(Emitter& emitter, NodeId id, size_t index) { return node_of(emitter, id).inputs[index]; }
inline std::string input(Emitter& emitter, NodeId id, size_t index) {
  return emitter.name(input_of(emitter, id, index));
}
inline std::string output(Emitter& emitter, NodeId id, size_t index = 0) {
  return emitter.name(node_of(emitter, id).outputs[index]);
}
inline const Attributes& attributes_of(Emitter& emitter, NodeId id) { return node_of(emitter, id).attributes; }
inline DType dtype_of_input(Emitter& emitter, NodeId id, size_t index) {
  return emitter.graph().type(input_of(emitter, id, index)).dtype;
}
inline std::vector<std::string> inputs(Emitter& emitter, NodeId id) {
  std::vector<std::string> names;
  for (const ValueId value : node_of(emitter, id).inputs) names.push_back(emitter.name(value));
  return names;
}

}  // namespace weft::onnx
