#include "weft/data/augment/augment_labels.h"

#include <cmath>
#include <numbers>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

namespace {

/// The position in range, or that which mirroring at the border (which is not repeated) leads to; -1 for none.
int64_t inside(int64_t at, int64_t size, bool reflect) {
  if (at >= 0 && at < size) return at;
  if (!reflect) return -1;
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1), wrapped = ((at % period) + period) % period;
  return wrapped < size ? wrapped : period - wrapped;
}

}  // namespace

void transform_labels(std::span<int32_t> labels, int64_t height, int64_t width, const AugmentOptions& options,
                      const AugmentChoice& choice, const Region& region, std::vector<int32_t>& scratch) {
  scratch.assign(labels.begin(), labels.end());
  const bool reflect = options.padding == Padding::reflect;
  const double angle = choice.degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_y = static_cast<double>(height - 1) / 2, middle_x = static_cast<double>(width - 1) / 2;
  int32_t* label = labels.data();
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < width; ++column, ++label) {
      *label = kIgnoredTarget;
      // Backwards: from the place to where its label comes from.
      const double from_x = static_cast<double>(column) - middle_x, from_y = static_cast<double>(row) - middle_y;
      int64_t x = inside(std::lround(cosine * from_x - sine * from_y + middle_x), width, reflect);
      int64_t y = inside(std::lround(sine * from_x + cosine * from_y + middle_y), height, reflect);
      if (x < 0 || y < 0) continue;
      if (choice.flip) x = width - 1 - x;
      x = inside(x + choice.left - options.crop_padding, width, reflect);
      y = inside(y + choice.top - options.crop_padding, height, reflect);
      if (x < 0 || y < 0) continue;
      x = region.left + (2 * x + 1) * region.width / (2 * width);
      y = region.top + (2 * y + 1) * region.height / (2 * height);
      *label = scratch[static_cast<size_t>(y * width + x)];
    }
}

}  // namespace weft::data
