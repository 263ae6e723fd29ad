#include "weft/graph/signature_key.h"

#include "weft/graph/marks.h"

namespace weft {

std::string signature_key(const NodeSignature& node) {
  std::string key = node.op->name;
  for (const auto& [name, value] : node.attributes.values())
    if (!is_mark(name)) key += "," + name + "=" + to_string(value);
  for (const auto* types : {&node.inputs, &node.outputs}) {
    key += ";";
    for (const TensorType& type : *types) key += (&type == types->data() ? "" : " ") + to_string(type);
  }
  return key;
}

}  // namespace weft
