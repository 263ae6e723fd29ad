// Random crops of any size and shape, and rotation.
#pragma once

#include <span>

#include "weft/base/rng.h"
#include "weft/data/pictures/image.h"
#include "weft/tensor/shape.h"

namespace weft::data {

/// A rectangle of pixels.
struct Region {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// A part of a picture with a share of its area drawn from [smallest_share, 1] and a ratio of width to height drawn
/// from 3/4 to 4/3 on a logarithmic scale, at a random place; after ten draws that do not fit, the largest part in the
/// middle (Szegedy et al. 2015, as torchvision's RandomResizedCrop).
Region draw_region(int64_t height, int64_t width, double smallest_share, RandomStream& random);

/// The part alone.
Image cut_out(const Image& image, const Region& region);

/// Turns `source`, f32 (C,H,W), by `degrees` against the clock around its middle into `target`: bilinear; what comes
/// from outside is 0, or mirrored at the border where `reflect`.
void rotate(std::span<const float> source, const Shape& shape, double degrees, bool reflect, std::span<float> target);

}  // namespace weft::data
