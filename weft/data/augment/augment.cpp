#include "weft/data/augment/augment.h"

#include <algorithm>
#include <cmath>
#include <string_view>

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

AugmentChoice identity_choice(const AugmentOptions& options) {
  AugmentChoice choice;
  choice.top = choice.left = options.crop_padding;
  return choice;
}

bool AugmentOptions::any() const {
  return crop_padding != 0 || flip != Flip::none || resized_crop != 0 || rotate != 0 || !changes.empty();
}

AugmentChoice draw_choice(const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index) {
  const auto sample = static_cast<uint64_t>(index);
  const uint64_t key = mix(seed, hash_name("augment"));
  RandomStream random(mix(key, static_cast<uint64_t>(epoch)), sample);
  const auto positions = static_cast<uint32_t>(2 * options.crop_padding + 1);
  AugmentChoice choice;
  choice.sample = {seed, epoch, index};
  choice.top = random.below(positions);
  choice.left = random.below(positions);
  const bool coin = random.below(2) == 1;
  if (options.flip == Flip::random) choice.flip = coin;
  if (options.flip == Flip::alternating) {
    const bool flipped_in_even_epochs = RandomStream(key, sample).below(2) == 1;
    choice.flip = flipped_in_even_epochs == (epoch % 2 == 0);
  }
  const auto either_way = [](double most, RandomStream& draws) {
    return most * (2 * static_cast<double>(draws.uniform()) - 1);
  };
  if (options.rotate != 0) {
    RandomStream draws = stream_of("rotate", choice.sample);
    choice.degrees = either_way(options.rotate, draws);
  }
  return choice;
}

Region draw_resized_crop(const AugmentOptions& options, const Image& picture, uint64_t seed, int64_t epoch,
                         int64_t index) {
  RandomStream draws = stream_of("resized crop", {seed, epoch, index});
  return draw_region(picture.height, picture.width, options.resized_crop, draws);
}

Normalization::Normalization(const ChannelStatistics& statistics, int64_t channels) : statistics_(statistics) {
  if (static_cast<int64_t>(statistics.mean.size()) != channels || statistics.deviation.size() != statistics.mean.size())
    fail(ErrorKind::shape, "[normalise] statistics of {} channels do not fit images of {}; use the training set's own",
         statistics.mean.size(), channels);
  tables_.resize(statistics.mean.size());
  for (size_t channel = 0; channel < tables_.size(); ++channel)
    for (size_t value = 0; value < 256; ++value)
      tables_[channel][value] =
          (static_cast<float>(value) / 255.0f - statistics.mean[channel]) / statistics.deviation[channel];
}

void crop_and_normalise(std::span<const uint8_t> source, const Shape& shape, const AugmentOptions& options,
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

namespace {

/// Those that see such values, each with draws of its own.
void apply_changes(const AugmentOptions& options, bool on_normalised, const AugmentChoice& choice, const Shape& shape,
                   std::span<float> target) {
  for (const PixelChange& change : options.changes) {
    if (change.on_normalised != on_normalised) continue;
    RandomStream random = stream_of(change.name, choice.sample);
    change.apply({target, shape, options.data_height, random});
  }
}

}  // namespace

void transform(std::span<const uint8_t> source, const Shape& shape, const AugmentOptions& options,
               const AugmentChoice& choice, const Normalization& normalization, std::span<float> target,
               std::vector<float>& scratch) {
  const auto area = static_cast<size_t>(shape[1] * shape[2]), channels = static_cast<size_t>(shape[0]);
  crop_and_normalise(source, shape, options, choice, normalization, target);
  const bool changes_values = std::any_of(options.changes.begin(), options.changes.end(),
                                          [](const PixelChange& change) { return !change.on_normalised; });
  if (choice.degrees != 0 || changes_values) {
    // Colours and rotation work on values from 0, which is black, to 1.
    const ChannelStatistics& statistics = normalization.statistics();
    const auto for_each_channel = [&](const auto& change) {
      for (size_t channel = 0; channel < channels; ++channel)
        for (float& value : target.subspan(channel * area, area))
          value = change(value, statistics.mean[channel], statistics.deviation[channel]);
    };
    for_each_channel([](float value, float mean, float deviation) { return value * deviation + mean; });
    if (choice.degrees != 0) {
      scratch.assign(target.begin(), target.end());
      rotate(scratch, shape, choice.degrees, options.padding == Padding::reflect, target);
    }
    apply_changes(options, /*on_normalised=*/false, choice, shape, target);
    for_each_channel([](float value, float mean, float deviation) { return (value - mean) / deviation; });
  }
  apply_changes(options, /*on_normalised=*/true, choice, shape, target);
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
  for (const PixelChange& change : options.changes)
    if (change.check) change.check(sample_shape);
}

}  // namespace weft::data
