#include "weft/data/augment/augment_geometry.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::data {

Region draw_region(int64_t height, int64_t width, double smallest_share, RandomStream& random) {
  constexpr int kAttempts = 10;
  constexpr double kLowestRatio = 3.0 / 4, kHighestRatio = 4.0 / 3;
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random.uniform());
  };
  const auto place = [&](int64_t room) { return static_cast<int64_t>(random.below(static_cast<uint32_t>(room + 1))); };
  const auto area = static_cast<double>(height * width);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double share = uniform(smallest_share, 1);
    const double ratio = std::exp(uniform(std::log(kLowestRatio), std::log(kHighestRatio)));
    const int64_t w = std::llround(std::sqrt(area * share * ratio)), h = std::llround(std::sqrt(area * share / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int64_t top = place(height - h), left = place(width - w);
    return {top, left, h, w};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  Region middle{0, 0, height, width};
  if (ratio < kLowestRatio) middle.height = std::llround(static_cast<double>(width) / kLowestRatio);
  if (ratio > kHighestRatio) middle.width = std::llround(static_cast<double>(height) * kHighestRatio);
  middle.top = (height - middle.height) / 2;
  middle.left = (width - middle.width) / 2;
  return middle;
}

Image cut_out(const Image& image, const Region& region) {
  Image part{image.channels, region.height, region.width, {}};
  part.pixels.resize(static_cast<size_t>(image.channels * region.height * region.width));
  uint8_t* out = part.pixels.data();
  for (int64_t channel = 0; channel < image.channels; ++channel)
    for (int64_t y = 0; y < region.height; ++y, out += region.width) {
      const int64_t row = (channel * image.height + region.top + y) * image.width + region.left;
      std::copy_n(image.pixels.data() + row, region.width, out);
    }
  return part;
}

void rotate(std::span<const float> source, const Shape& shape, double degrees, bool reflect, std::span<float> target) {
  const int64_t channels = shape[0], height = shape[1], width = shape[2], area = height * width;
  const double angle = degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_y = static_cast<double>(height - 1) / 2, middle_x = static_cast<double>(width - 1) / 2;
  /// The position in range that mirroring at the border (which is not repeated) leads to; -1 for none.
  const auto inside = [&](int64_t at, int64_t size) -> int64_t {
    if (at >= 0 && at < size) return at;
    if (!reflect || size == 1) return reflect ? 0 : -1;
    const int64_t period = 2 * (size - 1), wrapped = ((at % period) + period) % period;
    return wrapped < size ? wrapped : period - wrapped;
  };
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const double from_x = static_cast<double>(x) - middle_x, from_y = static_cast<double>(y) - middle_y;
      const double source_x = cosine * from_x - sine * from_y + middle_x;
      const double source_y = sine * from_x + cosine * from_y + middle_y;
      const auto left = static_cast<int64_t>(std::floor(source_x)), top = static_cast<int64_t>(std::floor(source_y));
      const auto right_share = static_cast<float>(source_x - static_cast<double>(left));
      const auto lower_share = static_cast<float>(source_y - static_cast<double>(top));
      const int64_t columns[] = {inside(left, width), inside(left + 1, width)};
      const int64_t rows[] = {inside(top, height), inside(top + 1, height)};
      const float column_share[] = {1 - right_share, right_share}, row_share[] = {1 - lower_share, lower_share};
      for (int64_t channel = 0; channel < channels; ++channel) {
        float sum = 0;
        for (size_t r = 0; r < 2; ++r)
          for (size_t c = 0; c < 2; ++c)
            if (rows[r] >= 0 && columns[c] >= 0)
              sum += row_share[r] * column_share[c] *
                     source[static_cast<size_t>(channel * area + rows[r] * width + columns[c])];
        target[static_cast<size_t>(channel * area + y * width + x)] = sum;
      }
    }
}

}  // namespace weft::data
