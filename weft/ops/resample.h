// Which pixel the nearest one is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace weft::ops {

/// The pixel of `inputs` from which resize takes pixel `at` of `outputs`: floor(at * inputs / outputs), with the scale
/// and the product rounded to f32 as torch rounds them. From 2 pixels to 82 pixel 41 is 0: 41 * (2 / 82) is below 1.
inline int64_t nearest_pixel(int64_t at, int64_t inputs, int64_t outputs) {
  const float scale = static_cast<float>(inputs) / static_cast<float>(outputs);
  return std::min(static_cast<int64_t>(std::floor(static_cast<float>(at) * scale)), inputs - 1);
}

}  // namespace weft::ops
