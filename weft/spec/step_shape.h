// What tells the plans of one step apart: how many samples a batch has, and how large its images are.
#pragma once

#include <compare>
#include <cstdint>

namespace weft::spec {

struct StepShape {
  int64_t batch = 1;
  int64_t image_height = 0;  // pixels, the width in proportion; 0: as the data have it

  /// Implicit: a number alone is a batch of samples as they are.
  StepShape(int64_t samples, int64_t height = 0) : batch(samples), image_height(height) {}
  friend auto operator<=>(const StepShape&, const StepShape&) = default;
};

}  // namespace weft::spec
