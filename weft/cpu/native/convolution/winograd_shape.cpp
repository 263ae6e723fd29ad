#include "weft/cpu/native/convolution/winograd_shape.h"

#include <fmt/format.h>

#include "weft/graph/granted_workspace.h"
#include "weft/ops/window.h"

namespace weft::native::winograd {

namespace {

/// Where these kernels were measured to be faster than oneDNN's (docs/performance.md): enough channels to pay for the
/// transforms of images, images that tiles cover without much waste, and enough tiles to pay for those of weights.
/// oneDNN's gradient of the weights is slow on images of 3x3, and beaten there too.
std::string why_slower(const std::string& op, const Shape& inputs, const Shape& outputs, int64_t tiles) {
  constexpr int64_t kFewestChannels = 24;
  const bool sums_weights = op == "conv2d_backward_weights";
  const double least_saved = sums_weights ? 1.2 : 1.7;
  const int64_t weights_of_tile = sums_weights ? 256 : 512;
  if (std::min(inputs[1], outputs[1]) < kFewestChannels) return "winograd is slower: few channels";
  const double saved =
      9.0 / 16 * static_cast<double>(outputs[0] * outputs[2] * outputs[3]) / static_cast<double>(tiles);
  if (saved < least_saved) return fmt::format("winograd is slower: tiles cover {} x {} badly", outputs[2], outputs[3]);
  if (tiles * weights_of_tile < inputs[1] * outputs[1]) return fmt::format("winograd is slower: only {} tiles", tiles);
  return "";
}

}  // namespace

int64_t tile_padding(const NodeSignature& node, size_t axis) {
  const int64_t padding = node.attributes.integers("padding")[axis];
  return node.op->name == "conv2d_backward_data" ? 2 - padding : padding;
}

std::string why_no_winograd(const NodeSignature& node, Isa isa, const Shape& weights, const TensorType& inputs,
                            const TensorType& outputs) {
  if (granted_workspace(node.attributes) == 0) return "winograd's tiles are not asked for (by the pass mark_winograd)";
  if (isa != Isa::avx512 || !multiplies_bf16()) return "winograd wants AVX512_BF16";
  if (!ops::has_winograd_windows(weights, node.attributes))
    return "winograd wants kernels of 3 x 3 without stride, dilation or groups";
  for (const int64_t padding : node.attributes.integers("padding"))
    if (padding > 1) return "winograd wants a padding of 0 or 1";
  for (const TensorType* images : {&inputs, &outputs})
    if (images->dtype != DType::bf16 || images->elements() == 0 || to_string(images->layout) != "aBcd16b")
      return fmt::format("winograd wants bf16 in blocks of 16 channels, not {}", to_string(*images));
  return why_slower(node.op->name, inputs.shape, outputs.shape, Tiling(outputs.shape).tiles());
}

}  // namespace weft::native::winograd
