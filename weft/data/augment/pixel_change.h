// A random change of the pixels of one sample, after crop, flip and rotation: colours, erasing, or one from outside.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/rng.h"
#include "weft/tensor/shape.h"

namespace weft::data {

/// Which sample is augmented: all draws are a pure function of it.
struct AugmentedSample {
  uint64_t seed = 0;
  int64_t epoch = 0, index = 0;
};

/// Draws for one kind of choice about one sample.
RandomStream stream_of(std::string_view kind, const AugmentedSample& sample);

struct PixelCall {
  std::span<float> image;  // (C,H,W), to be changed in place
  const Shape& shape;
  int64_t data_height = 0;  // of the samples before stages made them smaller: sizes in pixels are meant for that
  RandomStream& random;     // draws of this change about this sample
};

struct PixelChange {
  std::string name;  // of its draws
  /// False: values are from 0, which is black, to 1. True: they are normalised, 0 is the mean of the channel.
  bool on_normalised = false;
  std::function<void(const PixelCall&)> apply;  // thread-safe; allocates nothing
  /// Error(usage) where images of this shape cannot be changed so; empty: all can.
  std::function<void(const Shape& sample)> check = {};
};

}  // namespace weft::data
