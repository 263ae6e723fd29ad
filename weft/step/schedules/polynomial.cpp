// A power of what is left of the run.
#include <algorithm>
#include <cmath>

#include "weft/step/schedules/schedule.h"

namespace weft::step {

double polynomial(int64_t step, int64_t total, double rate, double power, double end_factor) {
  const double progress = std::min(1.0, static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, total)));
  const double end = rate * end_factor;
  return end + (rate - end) * std::pow(1 - progress, power);
}

}  // namespace weft::step
