// From the bytes of one image to the floats that a model reads: crop, flip, normalise.
// Every random choice is a pure function of (seed, epoch, index of the sample).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/data/dataset.h"
#include "weft/tensor/shape.h"

namespace weft::data {

enum class Padding {
  zero,     // black pixels, before normalising
  reflect,  // mirrored at the border, which is not repeated: c b | a b c
};
enum class Flip {
  none,
  random,       // each sample with probability 1/2 in each epoch
  alternating,  // each sample flipped in every other epoch, half of them in the even ones: every two epochs show both
};

struct AugmentOptions {
  int64_t crop_padding = 0;  // pixels added on each side before a crop of the original size
  Padding padding = Padding::zero;
  Flip flip = Flip::none;
};

/// Where the crop begins in the padded image, and whether it is then mirrored left to right.
struct AugmentChoice {
  int64_t top = 0, left = 0;
  bool flip = false;
};
/// The choice that changes nothing is top = left = crop_padding, flip = false.
AugmentChoice identity_choice(const AugmentOptions& options);
AugmentChoice draw_choice(const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index);

/// pixel -> (pixel / 255 - mean) / deviation, as one table per channel.
class Normalization {
 public:
  /// Error(shape) where the statistics have another number of channels.
  Normalization(const ChannelStatistics& statistics, int64_t channels);
  const std::array<float, 256>& table(int64_t channel) const { return tables_[static_cast<size_t>(channel)]; }

 private:
  std::vector<std::array<float, 256>> tables_;
};

/// Crops, flips and normalises `source`, u8 of shape (C,H,W), into `target`, f32 of the same shape. Allocates nothing.
void transform(std::span<const uint8_t> source, const Shape& shape, const AugmentOptions& options,
               const AugmentChoice& choice, const Normalization& normalization, std::span<float> target);

/// Error(usage) where the padding is negative, or too large to be mirrored in images of this shape.
void check_options(const AugmentOptions& options, const Shape& sample_shape);

}  // namespace weft::data
