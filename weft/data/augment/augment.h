// From the bytes of one image to the floats that a model reads: crop, flip, rotate, change colours, normalise, erase.
// Every random choice is a pure function of (seed, epoch, index of the sample).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/data/augment/augment_geometry.h"
#include "weft/data/augment/pixel_change.h"
#include "weft/data/dataset/dataset.h"
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
  double resized_crop = 0;  // smallest share of the picture in a crop of any size, resized to the sample; 0: none
  double rotate = 0;        // by up to so many degrees, either way
  std::vector<PixelChange> changes = {};  // in their order, after all of the above
  int64_t data_height = 0;                // of the samples, where a stage makes them smaller; 0: as they are

  bool any() const;
};

/// What is done to one sample. The choice that changes nothing is identity_choice().
struct AugmentChoice {
  int64_t top = 0, left = 0;  // where the crop begins in the padded image
  bool flip = false;          // left to right
  double degrees = 0;
  AugmentedSample sample{};  // by which AugmentOptions::changes draw
};
AugmentChoice identity_choice(const AugmentOptions& options);
/// Each kind of choice has draws of its own: switching one off leaves the others as they were.
AugmentChoice draw_choice(const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index);
/// The part of a picture that a resized crop shows.
Region draw_resized_crop(const AugmentOptions& options, const Image& picture, uint64_t seed, int64_t epoch,
                         int64_t index);

/// pixel -> (pixel / 255 - mean) / deviation, as one table per channel.
class Normalization {
 public:
  /// Error(shape) where the statistics have another number of channels.
  Normalization(const ChannelStatistics& statistics, int64_t channels);
  const std::array<float, 256>& table(int64_t channel) const { return tables_[static_cast<size_t>(channel)]; }
  const ChannelStatistics& statistics() const { return statistics_; }

 private:
  ChannelStatistics statistics_;
  std::vector<std::array<float, 256>> tables_;
};

/// Crops, flips, ... and normalises `source`, u8 of shape (C,H,W), into `target`, f32 of the same shape. `scratch` is
/// kept between calls, so that these allocate nothing.
void transform(std::span<const uint8_t> source, const Shape& shape, const AugmentOptions& options,
               const AugmentChoice& choice, const Normalization& normalization, std::span<float> target,
               std::vector<float>& scratch);

/// The same where only cropping, flipping and normalising are asked for.
void crop_and_normalise(std::span<const uint8_t> source, const Shape& shape, const AugmentOptions& options,
                        const AugmentChoice& choice, const Normalization& normalization, std::span<float> target);

/// Error(usage) where the padding is negative, or too large to be mirrored in images of this shape, or colours are to
/// be changed where there are none.
void check_options(const AugmentOptions& options, const Shape& sample_shape);

}  // namespace weft::data
