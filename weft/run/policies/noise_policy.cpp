#include "weft/run/policies/noise_policy.h"

#include <algorithm>
#include <cmath>

namespace weft::run {

int64_t batch_of_noise(const std::optional<predict::Interval>& scale, const BatchBounds& bounds, int64_t otherwise) {
  if (!scale) return otherwise;
  const double wanted = std::isfinite(scale->expected) ? scale->expected : static_cast<double>(bounds.most);
  int64_t batch = bounds.multiple_of;
  while (batch < bounds.least) batch *= 2;  // whatever the noise
  while (static_cast<double>(2 * batch) <= wanted && 2 * batch <= bounds.most) batch *= 2;
  return batch;
}

int64_t warmup_of_noise(const std::optional<predict::Interval>& scale, int64_t step_samples, int64_t most) {
  if (!scale) return 0;
  const double steps = std::ceil(2 * scale->expected / static_cast<double>(step_samples));
  return steps < static_cast<double>(most) ? static_cast<int64_t>(steps) : most;  // also of an infinite scale
}

}  // namespace weft::run
