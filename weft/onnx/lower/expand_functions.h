// Puts the bodies of the model's own functions in the place of their calls.
#pragma once

#include "weft/onnx/file/model.h"

namespace weft::onnx {

/// Inner values get names of their own. Error(data) for functions that call each other in a circle, or
/// become more nodes than any model has.
Model expand_functions(Model model);

}  // namespace weft::onnx
