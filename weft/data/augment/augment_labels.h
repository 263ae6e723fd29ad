// What augmentation does to the classes of pixels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/data/augment/augment.h"

namespace weft::data {

/// Moves labels i32 (H,W) as transform() moves the pixels of their image: first the part that a resized crop shows
/// (`region`), then crop, flip and rotation. Each place takes the label of the nearest pixel, -100 (not counted) where
/// it comes from outside and is not mirrored. `scratch` is kept between calls.
void transform_labels(std::span<int32_t> labels, int64_t height, int64_t width, const AugmentOptions& options,
                      const AugmentChoice& choice, const Region& region, std::vector<int32_t>& scratch);

}  // namespace weft::data
