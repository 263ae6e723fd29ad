// A falling line times a cosine wave.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/step/schedules/schedule.h"

namespace weft::step {

double linear_cosine(int64_t step, int64_t total, double rate, const LinearCosineOptions& options) {
  const double progress = std::min(1.0, static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, total)));
  const double wave = (1 + std::cos(2 * std::numbers::pi * options.periods * progress)) / 2;
  return rate * ((options.alpha + 1 - progress) * wave + options.beta);
}

}  // namespace weft::step
