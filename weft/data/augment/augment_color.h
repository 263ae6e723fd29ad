// Changes of brightness, contrast, saturation and hue, as torchvision defines them.
#pragma once

#include <span>

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

}  // namespace weft::data
