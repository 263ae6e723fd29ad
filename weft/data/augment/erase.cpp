#include "weft/data/augment/erase.h"

#include <algorithm>
#include <cmath>

namespace weft::data {

namespace {

/// What lies in the image of a rectangle around a pixel.
Region around(int64_t y, int64_t x, int64_t height, int64_t width, const Shape& shape) {
  const int64_t top = y - height / 2, left = x - width / 2;
  const int64_t first_row = std::clamp<int64_t>(top, 0, shape[1]),
                first_column = std::clamp<int64_t>(left, 0, shape[2]);
  return {first_row, first_column, std::clamp<int64_t>(top + height, 0, shape[1]) - first_row,
          std::clamp<int64_t>(left + width, 0, shape[2]) - first_column};
}

void erase(const Region& region, const PixelCall& call) {
  const int64_t height = call.shape[1], width = call.shape[2];
  for (int64_t channel = 0; channel < call.shape[0]; ++channel)
    for (int64_t y = region.top; y < region.top + region.height; ++y) {
      float* row = call.image.data() + (channel * height + y) * width + region.left;
      std::fill(row, row + region.width, 0.0f);
    }
}

/// Pixels of the data, in an image that a stage made smaller or larger; at least one.
int64_t scaled(int64_t pixels, const PixelCall& call) {
  if (call.data_height == 0 || call.data_height == call.shape[1]) return pixels;
  return std::max<int64_t>(1, (2 * pixels * call.shape[1] + call.data_height) / (2 * call.data_height));
}

}  // namespace

Region draw_cutout(const Shape& shape, int64_t side, RandomStream& random) {
  const auto y = random.below(static_cast<uint32_t>(shape[1])), x = random.below(static_cast<uint32_t>(shape[2]));
  return around(y, x, side, side, shape);
}

Region draw_erased(const Shape& shape, double probability, RandomStream& random) {
  if (static_cast<double>(random.uniform()) >= probability) return {};
  const auto area = static_cast<double>(shape[1] * shape[2]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = 0.02 + 0.31 * static_cast<double>(random.uniform());
    const double ratio = std::exp(std::log(0.3) + std::log(11.0) * static_cast<double>(random.uniform()));
    const int64_t height = std::llround(std::sqrt(area * share * ratio));
    const int64_t width = std::llround(std::sqrt(area * share / ratio));
    const auto row = random.bits(), column = random.bits();
    if (height < 1 || width < 1 || height >= shape[1] || width >= shape[2]) continue;
    return {static_cast<int64_t>(row % static_cast<uint32_t>(shape[1] - height + 1)),
            static_cast<int64_t>(column % static_cast<uint32_t>(shape[2] - width + 1)), height, width};
  }
  return {};
}

PixelChange cutout_change(int64_t side) {
  return {.name = "cutout", .on_normalised = true, .apply = [side](const PixelCall& call) {
            erase(draw_cutout(call.shape, scaled(side, call), call.random), call);
          }};
}

PixelChange erasing_change(double probability) {
  return {.name = "erasing", .on_normalised = true, .apply = [probability](const PixelCall& call) {
            erase(draw_erased(call.shape, probability, call.random), call);
          }};
}

}  // namespace weft::data
