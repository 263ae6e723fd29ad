// Attention as one operator.
#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

void add_attention(OperatorTable&) {}

}  // namespace weft::onnx
