#include "weft/data/augment/mix_batch.h"

#include <algorithm>
#include <cmath>

#include "weft/base/rng.h"

namespace weft::data {

namespace {

/// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double draw_gamma(double shape, RandomStream& random) {
  if (shape < 1) {
    const double u = (static_cast<double>(random.bits()) + 1) * 0x1p-32;
    return draw_gamma(shape + 1, random) * std::pow(u, 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const auto x = static_cast<double>(random.normal());
    const double v = std::pow(1 + c * x, 3), u = (static_cast<double>(random.bits()) + 1) * 0x1p-32;
    if (v > 0 && std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double draw_beta(double alpha, RandomStream& random) {
  const double a = draw_gamma(alpha, random), b = draw_gamma(alpha, random);
  return a + b > 0 ? a / (a + b) : 0.5;
}

/// Calls mix(row, other) for every image with the one before it as it was; `before`: the first one's.
template <typename Mix>
void with_neighbours(float* images, size_t count, size_t size, const float* before, Mix mix) {
  for (size_t row = count; row-- > 0;) mix(images + row * size, row == 0 ? before : images + (row - 1) * size);
}

}  // namespace

void mix_batch(std::span<float> images, const Shape& shape, std::span<const int32_t> labels,
               const std::optional<MixNeighbour>& before, const MixOptions& options, uint64_t seed, int64_t epoch,
               int64_t step, std::span<float> targets) {
  const size_t count = labels.size();
  const int64_t channels = shape[0], height = shape[1], width = shape[2];
  RandomStream random(mix(mix(seed, hash_name("mix")), static_cast<uint64_t>(epoch)), static_cast<uint64_t>(step));
  const bool coin = random.below(2) == 1;
  const bool cut = options.cutmix > 0 && (options.mixup <= 0 || coin);
  double kept = draw_beta(cut ? options.cutmix : options.mixup, random);
  const auto size = static_cast<size_t>(channels * height * width);
  std::vector<float> last;  // as it is before it is mixed itself
  if (!before) last.assign(images.data() + (count - 1) * size, images.data() + count * size);
  const float* first_neighbour = before ? before->image.data() : last.data();
  const int32_t first_label = before ? before->label : labels[count - 1];
  if (cut) {
    // A box of 1 - kept of the area around a point anywhere, cut off at the border; what it really covers counts.
    const auto box = [&](int64_t length) {
      const int64_t side = static_cast<int64_t>(static_cast<double>(length) * std::sqrt(1 - kept));
      const auto middle = static_cast<int64_t>(random.below(static_cast<uint32_t>(length)));
      return std::pair(std::clamp<int64_t>(middle - side / 2, 0, length),
                       std::clamp<int64_t>(middle - side / 2 + side, 0, length));
    };
    const std::pair rows = box(height), columns = box(width);
    const int64_t box_width = columns.second - columns.first;
    with_neighbours(images.data(), count, size, first_neighbour, [&](float* image, const float* other) {
      for (int64_t row = 0; row < channels * height; ++row)
        if (row % height >= rows.first && row % height < rows.second)
          std::copy_n(other + row * width + columns.first, box_width, image + row * width + columns.first);
    });
    kept = 1 - static_cast<double>((rows.second - rows.first) * box_width) / static_cast<double>(height * width);
  } else {
    const auto own = static_cast<float>(kept);
    with_neighbours(images.data(), count, size, first_neighbour, [&](float* image, const float* other) {
      for (size_t at = 0; at < size; ++at) image[at] = own * image[at] + (1 - own) * other[at];
    });
  }
  const size_t classes = targets.size() / count;
  std::fill(targets.begin(), targets.end(), 0.0f);
  float* target = targets.data();
  for (size_t row = 0; row < count; ++row, target += classes) {
    target[labels[row]] += static_cast<float>(kept);
    target[row == 0 ? first_label : labels[row - 1]] += static_cast<float>(1 - kept);
  }
}

}  // namespace weft::data
