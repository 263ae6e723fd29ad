// Puts operators of ONNX in the place of those that ONNX Runtime adds for quantized networks (its domain com.microsoft,
// "Contrib Operators"): each means the operator on reals between conversions, which says what integers compute.
//
//   QLinearAdd(a.., b.., y..)  ->  QuantizeLinear(Add(DequantizeLinear(a..), DequantizeLinear(b..)), y..)
//
// Likewise QLinearMul, QLinearConcat, QLinearSigmoid, QLinearLeakyRelu, QLinearAveragePool, QLinearGlobalAveragePool,
// QLinearSoftmax (of version 13 and later) and QGemm; QuantizeLinear and DequantizeLinear of that domain are ONNX's.
// Others stay as they are. So do those whose channels come last.
#pragma once

#include "weft/onnx/file/model.h"

namespace weft::onnx {

Model expand_contributed(Model model);

}  // namespace weft::onnx
