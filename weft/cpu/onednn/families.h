// The families of kernels that run on oneDNN, one file each, and what their factories share.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/cpu/onednn/call_kernel.h"

namespace weft::onednn {

/// The node that a kernel is asked for. oneDNN's thread count is set when a factory runs.
struct Request {
  const NodeSignature& node;
  int threads;
  const std::shared_ptr<const Engine>& engine;

  std::unique_ptr<CallKernel> new_kernel() const { return std::make_unique<CallKernel>(engine, threads); }
};

/// Returns null and sets `why_not` where oneDNN cannot serve the node.
using Factory = std::function<std::unique_ptr<Kernel>(const Request&, std::string& why_not)>;
using Register = std::function<void(const std::string& op, Factory)>;

void add_convolutions(const Register&);   // conv2d and its two gradients
void add_matmul(const Register&);         // matmul, reorder, cast
void add_normalization(const Register&);  // batch_norm, layer_norm, batch_norm_inference
void add_normalization_gradients(const Register&);
void add_pooling(const Register&);      // avg_pool2d and its gradient
void add_elementwise(const Register&);  // functions of one tensor, arithmetic of two
void add_reduction(const Register&);    // reduce_sum, reduce_mean
void add_recurrent(const Register&);    // lstm, gru
void add_recurrent_gradients(const Register&);

// Not here, because a NaN must not turn into a number, or it would not show in the loss: oneDNN's maxima of two
// tensors, over an axis and over a window, its softmax, and its gradients of elu, hardswish and maximum pooling. Nor
// its gradient of leaky_relu, which at a NaN is another than PyTorch's.

/// Sets `why_not` and returns null: "return declined(why_not, ...)" in a factory.
inline std::unique_ptr<Kernel> declined(std::string& why_not, std::string reason) {
  why_not = std::move(reason);
  return nullptr;
}

/// "no fast implementation for f32[2,3]@ba, f32[3]".
std::string no_implementation(const NodeSignature& node);

/// A kernel of one primitive, or declined where `desc` is empty.
std::unique_ptr<Kernel> single_call(const Request& request, const PrimitiveDesc& desc,
                                    const std::vector<Argument>& arguments, std::string& why_not);

}  // namespace weft::onednn
