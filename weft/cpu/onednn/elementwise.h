// Calls of oneDNN's functions that other families make too.
#pragma once

#include "weft/cpu/onednn/ask_pointwise.h"
#include "weft/cpu/onednn/call_kernel.h"

namespace weft::onednn {

/// A primitive for relu that keeps NaN, and its operands; `to` may be `from`.
struct ReluCall {
  PrimitiveDesc desc;
  std::vector<Argument> arguments;
};
ReluCall ask_relu(const Engine& engine, const TensorType& type, Operand from, Operand to);

/// The gradient before a relu from that behind it and the relu's output.
PrimitiveDesc ask_relu_backward(const Engine& engine, const MemoryDesc& data);
std::vector<Argument> relu_backward_arguments(const MemoryDesc& data, Operand gradient, Operand relu_output,
                                              Operand to);

}  // namespace weft::onednn
