// The shape of a step, which tells its plans apart: samples per batch, and image size.
#pragma once

#include <compare>
#include <cstdint>

namespace weft::spec {

struct StepShape {
  int64_t batch = 1;
  int64_t image_height = 0;  // pixels, width in proportion; 0: as in the data

  /// Implicit: a number alone is a batch of samples in their own size.
  StepShape(int64_t samples, int64_t height = 0) : batch(samples), image_height(height) {}
  friend auto operator<=>(const StepShape&, const StepShape&) = default;
};

}  // namespace weft::spec
