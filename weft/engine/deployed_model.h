// A model as it is deployed: everything that inference needs, as plain data. One file holds it (engine/model_file.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/mapped_file.h"
#include "weft/engine/picture_input.h"
#include "weft/graph/constant_text.h"
#include "weft/tensor/dtype.h"

namespace weft::engine {

/// The symbol that stands for the size of the batch in types and graphs.
inline constexpr const char* kBatchSymbol = "N";

/// An input or output: its name, and its type as text, "f32[N,3,224,224]".
struct Port {
  std::string name;
  std::string type;
  friend bool operator==(const Port&, const Port&) = default;
};

/// The text of one inference graph (graph/symbolic_text.h). Its inputs are batch inputs alone: weights are constants.
struct DeployedGraph {
  int64_t batch = 0;  // for which it is; 0: for any, the symbol N
  std::string text;
};

struct DeployedModel {
  std::string source;                           // the file, for messages
  std::string name;                             // "resnet18"
  DType precision = DType::f32;                 // of convolutions and matrix products, where nobody asks otherwise
  std::map<std::string, std::string> metadata;  // "licence", "source", "model", ...
  std::vector<std::string> classes;             // names of the classes; empty: it has none
  std::optional<PictureInput> pictures;         // how a picture becomes the first input
  std::vector<Port> inputs, outputs;            // for any batch, or for the first graph's
  std::vector<DeployedGraph> graphs;
  ConstantTable constants;  // of all graphs
  /// Where constants lie that were read of a file; null: elsewhere. What has become something else need not stay in
  /// memory.
  std::shared_ptr<const MappedFile> mapping = nullptr;
};

}  // namespace weft::engine
