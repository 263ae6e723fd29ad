// An ONNX model as one of weft's models: `weft train --model onnx:FILE` trains it further.
#pragma once

#include <vector>

#include "weft/models/model.h"
#include "weft/onnx/lower/lower.h"

namespace weft::onnx {

/// The inputs of a model that a run gives: the one that the data feed, and what goes with tokens.
struct Inputs {
  ValueInfo fed;
  std::vector<ValueInfo> companions;  // masks, token types and positions, by their names
};
/// Error(usage) where the data would have to feed several.
Inputs inputs_of(const Model& model);
/// [N,T]: all tokens count, are of one type, and stand one after the other. Error(usage) where the input has another
/// number of dimensions.
Tensor companion_values(const Model& model, const ValueInfo& info, const Shape& tokens);

/// The model "onnx", whose option `file` names the file. Its tensors of reals are parameters that start as the file has
/// them, its running statistics are states. Where the data have another number of classes than the model, the last
/// layer starts anew with theirs. A softmax at the end is left out: losses want logits.
models::ModelEntry onnx_model_entry(Evaluate evaluate);

}  // namespace weft::onnx
