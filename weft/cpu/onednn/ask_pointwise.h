// Asks oneDNN for functions of each element, arithmetic of two tensors and reductions, in either of its versions.
#pragma once

#include "weft/cpu/onednn/primitive_desc.h"

namespace weft::onednn {

/// A function of one number; what alpha and beta mean depends on it.
struct PointFunction {
  dnnl_alg_kind_t algorithm;  // dnnl_eltwise_*
  float alpha = 0, beta = 0;
};

// Each is empty where oneDNN has no implementation. `data` is the input and the output.
PrimitiveDesc ask_eltwise(const Engine& engine, const PointFunction& function, const MemoryDesc& data);
/// `data` is what the derivative is taken at, and both gradients.
PrimitiveDesc ask_eltwise_backward(const Engine& engine, const PointFunction& function, const MemoryDesc& data);

/// Dimensions of 1 in `b` stretch; few implementations stretch `a`.
PrimitiveDesc ask_binary(const Engine& engine, dnnl_alg_kind_t algorithm, const MemoryDesc& a, const MemoryDesc& b,
                         const MemoryDesc& output);

/// max(f(x), x) in one sweep, for a function f(x) >= x: that is f(x), but for a NaN, which oneDNN's relu and exp turn
/// into a number. The maximum of x86 returns its second operand there, and so x. Takes x as both sources and as the
/// second source of post-op 1.
PrimitiveDesc ask_keeping_nan(const Engine& engine, dnnl_alg_kind_t function, const MemoryDesc& data);

/// Over the dimensions that are 1 in `output` and more in `input`.
PrimitiveDesc ask_reduction(const Engine& engine, dnnl_alg_kind_t algorithm, const MemoryDesc& input,
                            const MemoryDesc& output);

}  // namespace weft::onednn
