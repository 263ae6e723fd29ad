// Quantized numbers and what computes with them.
#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

void add_quantized(OperatorTable&) {}

}  // namespace weft::onnx
