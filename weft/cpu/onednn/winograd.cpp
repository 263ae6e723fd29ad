// Which convolutions oneDNN computes by Winograd's algorithm. Measured in f32 on AVX-512, one thread, against the
// direct kernels, in their operations per second: 64 to 256 channels at 8x8 to 56x56 1.5 to 2.3 times forward and in
// the data gradient, 1.4 to 2.2 times in the weights'; 32 channels beside 64 twice forward, 1.4 times in the data
// gradient; 16 to 32 channels, images below 7x7 and batches of few tiles no more or less. docs/performance.md has the
// table.
#include <algorithm>

#include "weft/cpu/onednn/convolution.h"
#include "weft/ops/window.h"

namespace weft::onednn {

namespace {

constexpr int64_t kTile = 4;

bool is_worth_it(const Convolution& c) {
  const auto& image = c.image.shape;
  const auto& output = c.output.shape;
  const int64_t least = std::min(image[1], output[1]), most = std::max(image[1], output[1]);
  if (std::max(c.image.elements(), c.output.elements()) > INT32_MAX) return false;  // it counts in int
  if (least < (c.pass == Pass::backward_weights ? 64 : 24) || most < 64) return false;
  const int64_t rows = (output[2] + kTile - 1) / kTile, columns = (output[3] + kTile - 1) / kTile;
  const double used = static_cast<double>(output[2] * output[3]) / static_cast<double>(kTile * kTile * rows * columns);
  return used > 0.7 && output[0] * rows * columns >= 64;
}

}  // namespace

PrimitiveDesc ask_winograd(const Engine& engine, const Convolution& c, const MemoryDesc& image,
                           const MemoryDesc& output) {
  const bool fits = c.image.dtype == DType::f32 && c.output.dtype == DType::f32 && c.weights.dtype == DType::f32 &&
                    ops::has_winograd_windows(c.weights.shape, c.stride, c.dilation, c.groups);
  if (!fits || !is_worth_it(c)) return {};
  const auto weights = describe_weights(c, std::nullopt);
  PrimitiveDesc desc = ask_convolution(engine, c, image, *weights, output, dnnl_convolution_winograd);
  while (desc && desc.quality() != Quality::direct) desc.next();
  // Some of its schedules hold all transformed images, several times the bytes of the images.
  if (desc && desc.memory_desc(dnnl_query_scratchpad_md).bytes() > c.winograd) return {};
  return desc;
}

}  // namespace weft::onednn
