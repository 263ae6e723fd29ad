// Changes of brightness, contrast, saturation and hue, as torchvision defines them.
#pragma once

#include <span>

#include "weft/data/augment/pixel_change.h"
#include "weft/tensor/shape.h"

namespace weft::data {

struct ColorChange {
  float brightness = 1;  // factor: 0 is black, 1 the image as it is
  float contrast = 1;    // 0 is the mean grey
  float saturation = 1;  // 0 is grey
  float hue = 0;         // of a turn around the colour circle, -0.5 to 0.5
  friend bool operator==(const ColorChange&, const ColorChange&) = default;
};

/// In place, on values in [0, 1] of shape (C,H,W); with one channel brightness and contrast only. In the order above,
/// each clamped to [0, 1].
void change_color(std::span<float> image, const Shape& shape, const ColorChange& change);

/// How far colours may change, either way; all off.
struct ColorRanges {
  double brightness = 0, contrast = 0, saturation = 0;  // factors from 1 - this to 1 + this
  double hue = 0;                                       // turns of the colour circle
  bool any() const { return brightness != 0 || contrast != 0 || saturation != 0 || hue != 0; }
};
ColorChange draw_color(const ColorRanges& ranges, RandomStream& random);
PixelChange random_color(const ColorRanges& ranges);

}  // namespace weft::data
