// A constant factor per so many steps, smoothly or in stairs.
#include <algorithm>
#include <cmath>

#include "weft/step/schedules/schedule.h"

namespace weft::step {

double exponential(double step, double steps_per_factor, double rate, double factor, bool stairs) {
  const double exponent = step / std::max(1.0, steps_per_factor);
  return rate * std::pow(factor, stairs ? std::floor(exponent) : exponent);
}

}  // namespace weft::step
