// An ONNX model as one of weft's models: `weft train --model onnx:FILE` trains it further.
#pragma once

#include "weft/models/model.h"
#include "weft/onnx/lower/lower.h"

namespace weft::onnx {

/// The model "onnx", whose option `file` names the file. Its tensors of reals are parameters that start as the file has
/// them, its running statistics are states. Where the data have another number of classes than the model, the last
/// layer starts anew with theirs. A softmax at the end is left out: losses want logits.
models::ModelEntry onnx_model_entry(Evaluate evaluate);

}  // namespace weft::onnx
