// The windows that convolution and pooling slide over the last two axes of an image.
#pragma once

#include <string>

#include "weft/graph/op_def.h"
#include "weft/ops/ops.h"

namespace weft::ops {

struct Window {
  Pair kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
};

/// Positions of a window along one axis; 0 or less where it does not fit.
inline int64_t window_positions(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

/// A list attribute of two entries, each at least `minimum`; Error(shape) naming the attribute.
Pair pair_attribute(const InferContext& context, const std::string& name, int64_t minimum);

/// The window of a node: "stride", "padding", and "dilation" where the op has it; the kernel is given.
Window window_attributes(const InferContext& context, const Pair& kernel);

/// Output height and width for an image of `size`; Error(shape) where the kernel is larger than the padded image.
/// `source` says where the size comes from: "'image' (128,1,28,28)".
Pair window_output(const InferContext& context, const Window& window, const Pair& size, const std::string& source);

/// Of a convolution whose weights are [O,I,H,W]: do its windows of 3x3 touch all channels and move by one pixel, as
/// Winograd's algorithm (Lavin and Gray 2016) wants?
bool has_winograd_windows(const Shape& weights, const Pair& stride, const Pair& dilation, int64_t groups);
/// By the attributes of a conv2d or of one of its gradients.
bool has_winograd_windows(const Shape& weights, const Attributes& attributes);

}  // namespace weft::ops
