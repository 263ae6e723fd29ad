// A power of what is left of the run.
#include <algorithm>
#include <cmath>

#include "weft/step/schedules/entries.h"
#include "weft/step/schedules/keys.h"
#include "weft/step/schedules/schedule.h"

namespace weft::step {

double polynomial(int64_t step, int64_t total, double rate, double power, double end_factor) {
  const double progress = std::min(1.0, static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, total)));
  const double end = rate * end_factor;
  return end + (rate - end) * std::pow(1 - progress, power);
}

ScheduleEntry polynomial_entry() {
  return {
      .name = "polynomial",
      .summary = "what is left of the run to a power, as PolynomialLR",
      .keys = {{.name = "power", .value = 1.0, .low = kAboveZero, .high = 100, .help = "polynomial"}, end_factor_key()},
      .make = [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) {
        return after_rise(schedule, rate, course,
                          [=, power = schedule.power, end_factor = schedule.end_factor](int64_t step, int64_t steps) {
                            return polynomial(step, steps, rate, power, end_factor);
                          });
      }};
}

}  // namespace weft::step
