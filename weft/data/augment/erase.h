// Rectangles of an image that are set to the mean: cutout and random erasing.
#pragma once

#include <cstdint>

#include "weft/data/augment/augment_geometry.h"
#include "weft/data/augment/pixel_change.h"

namespace weft::data {

/// A square around any pixel, as far as it lies in the image (DeVries and Taylor 2017).
Region draw_cutout(const Shape& shape, int64_t side, RandomStream& random);

/// Empty, or with this probability a rectangle of 2 to 33 % of the area and ratios from 0.3 to 3.3 (Zhong et al. 2017,
/// with the constants of torchvision's RandomErasing).
Region draw_erased(const Shape& shape, double probability, RandomStream& random);

PixelChange cutout_change(int64_t side);
PixelChange erasing_change(double probability);

}  // namespace weft::data
