#include "weft/data/augment.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/rng.h"

namespace weft::data {

namespace {

/// The source row or column behind position `at` of the padded axis, or -1 for a black pixel.
int64_t source_position(int64_t at, int64_t size, const AugmentOptions& options) {
  const int64_t position = at - options.crop_padding;
  if (position >= 0 && position < size) return position;
  if (options.padding == Padding::zero) return -1;
  return position < 0 ? -position : 2 * (size - 1) - position;
}

}  // namespace

AugmentChoice identity_choice(const AugmentOptions& options) { return {options.crop_padding, options.crop_padding}; }

AugmentChoice draw_choice(const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index) {
  // The draws come in a fixed order, each whether it is used or not: switching one off leaves the others as they were.
  const auto sample = static_cast<uint64_t>(index);
  const uint64_t key = mix(seed, hash_name("augment"));
  RandomStream random(mix(key, static_cast<uint64_t>(epoch)), sample);
  const auto positions = static_cast<uint32_t>(2 * options.crop_padding + 1);
  AugmentChoice choice;
  choice.top = random.below(positions);
  choice.left = random.below(positions);
  const bool coin = random.below(2) == 1;
  if (options.flip == Flip::random) choice.flip = coin;
  if (options.flip == Flip::alternating) {
    const bool flipped_in_even_epochs = RandomStream(key, sample).below(2) == 1;
    choice.flip = flipped_in_even_epochs == (epoch % 2 == 0);
  }
  return choice;
}

Normalization::Normalization(const ChannelStatistics& statistics, int64_t channels) {
  if (static_cast<int64_t>(statistics.mean.size()) != channels || statistics.deviation.size() != statistics.mean.size())
    fail(ErrorKind::shape, "[normalise] statistics of {} channels do not fit images of {}; use the training set's own",
         statistics.mean.size(), channels);
  tables_.resize(statistics.mean.size());
  for (size_t channel = 0; channel < tables_.size(); ++channel)
    for (size_t value = 0; value < 256; ++value)
      tables_[channel][value] =
          (static_cast<float>(value) / 255.0f - statistics.mean[channel]) / statistics.deviation[channel];
}

void transform(std::span<const uint8_t> source, const Shape& shape, const AugmentOptions& options,
               const AugmentChoice& choice, const Normalization& normalization, std::span<float> target) {
  const int64_t channels = shape[0], height = shape[1], width = shape[2];
  // Columns [inside_begin, inside_end) of the crop lie in the image; the rest is padding.
  const int64_t shift = choice.left - options.crop_padding;
  const int64_t inside_begin = std::clamp<int64_t>(-shift, 0, width);
  const int64_t inside_end = std::clamp<int64_t>(width - shift, inside_begin, width);
  float* out = target.data();
  for (int64_t channel = 0; channel < channels; ++channel) {
    const auto& table = normalization.table(channel);
    const uint8_t* plane = source.data() + channel * height * width;
    for (int64_t y = 0; y < height; ++y, out += width) {
      const int64_t row = source_position(y + choice.top, height, options);
      if (row < 0) {
        std::fill(out, out + width, table[0]);
        continue;
      }
      const uint8_t* line = plane + row * width;
      const auto padded = [&](int64_t x) {
        const int64_t column = source_position(x + choice.left, width, options);
        out[x] = column < 0 ? table[0] : table[line[column]];
      };
      for (int64_t x = 0; x < inside_begin; ++x) padded(x);
      for (int64_t x = inside_begin; x < inside_end; ++x) out[x] = table[line[x + shift]];
      for (int64_t x = inside_end; x < width; ++x) padded(x);
      if (choice.flip) std::reverse(out, out + width);
    }
  }
}

void check_options(const AugmentOptions& options, const Shape& sample_shape) {
  if (options.crop_padding < 0)
    fail(ErrorKind::usage, "[augment] crop padding {} is negative; give pixels per side, 0 for none",
         options.crop_padding);
  const int64_t smaller = std::min(sample_shape[1], sample_shape[2]);
  const int64_t most = options.padding == Padding::reflect ? smaller - 1 : smaller;
  if (options.crop_padding > most)
    fail(ErrorKind::usage, "[augment] crop padding {} is too large for samples {}; at most {}", options.crop_padding,
         to_string(sample_shape), most);
}

}  // namespace weft::data
