// The inference graph of an ONNX model for any size of its batch.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "weft/library/library.h"
#include "weft/onnx/lower/lower.h"

namespace weft::deploy {

class OnnxGraphs {
 public:
  /// `sizes`: of open dimensions by their names. Keeps a reference to the library. Error(usage) lists what weft cannot
  /// import, and names a size of a dimension that the model has not, or of the batch.
  OnnxGraphs(const Library& library, onnx::Model model, std::map<std::string, int64_t> sizes);

  /// The first dimension of the first input, where the file fixes it.
  std::optional<int64_t> fixed_batch() const;
  /// With the first dimension of the first input, and all of its name, bound to the batch. Error(usage) where another
  /// dimension is open, or the model is no single graph.
  Graph graph_for(int64_t batch) const;

 private:
  const onnx::Model& model() const { return lowerable_.model(); }
  /// Those that a run brings.
  std::vector<const onnx::ValueInfo*> inputs() const;
  /// What the first dimension of the first input is called; empty: nothing.
  std::string batch_name() const;
  void check_sizes() const;
  TensorType type_of(const onnx::ValueInfo& info, int64_t batch) const;

  const std::map<std::string, int64_t> sizes_;
  const std::shared_ptr<const Device> device_;
  const onnx::LowerableModel lowerable_;
};

}  // namespace weft::deploy
