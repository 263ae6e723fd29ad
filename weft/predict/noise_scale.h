// The gradient noise scale: how far the batch can grow (McCandlish, Kaplan, Amodei and others 2018, "An empirical model
// of large-batch training"). With g the gradient of a batch of B samples, E |g|^2 = |G|^2 + tr(S) / B, so that two
// sizes of batches tell both (appendix A.1):
//   |G|^2 = (B |g_B|^2 - b |g_b|^2) / (B - b)       tr(S) = (|g_b|^2 - |g_B|^2) / (1/b - 1/B)
// The noise scale is tr(S) / |G|^2, in samples. Each of the two is averaged over steps before they are divided.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/predict/interval.h"
#include "weft/step/metrics.h"

namespace weft::predict {

using GradientNorms = step::NoiseMetrics;

struct NoiseScale {
  double gradient_square = 0;  // |G|^2
  double noise = 0;            // tr(S)
  Interval scale;              // samples; the ends are infinite or 0 where the measurements do not bound them
  int64_t measurements = 0;
};

/// nullopt of fewer than two measurements, or where sizes do not differ. The interval is of a jackknife over blocks of
/// neighbouring steps.
std::optional<NoiseScale> estimate_noise_scale(const std::vector<GradientNorms>& norms);

/// Steps to the same loss with batches of `to` samples over those with batches of `from` (equation 2.11 there: steps
/// are in proportion to 1 + scale / B).
double steps_factor(double scale, double from, double to);

/// What `weft explain` says of it: the scale early and late in the run, and what larger batches would take.
std::string describe_noise_scale(const std::vector<GradientNorms>& norms, int64_t batch);

}  // namespace weft::predict
