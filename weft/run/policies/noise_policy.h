// Batch and warm-up from the gradient noise scale (predict/noise_scale.h), which is measured before the first step.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/predict/interval.h"

namespace weft::run {

/// What a batch may be, whatever the noise.
struct BatchBounds {
  int64_t least = 16;
  int64_t most = 1024;
  int64_t multiple_of = 1;  // ranks that divide each batch
};

/// The largest power of two that is no larger than the noise scale, times `multiple_of` over its own power of two,
/// within the bounds. Up to the noise scale, twice the batch needs nearly half the steps; beyond it, samples are wasted
/// (McCandlish et al. 2018). An infinite scale gives the most, nullopt (nothing was measured) the `otherwise`.
int64_t batch_of_noise(const std::optional<predict::Interval>& scale, const BatchBounds& bounds, int64_t otherwise);

/// As many steps as it takes to see twice the noise scale in samples, at most `most`: the mean of fewer gradients is
/// mostly noise, and so is what the optimiser's running means make of it. 0 where nothing was measured.
int64_t warmup_of_noise(const std::optional<predict::Interval>& scale, int64_t step_samples, int64_t most);

}  // namespace weft::run
