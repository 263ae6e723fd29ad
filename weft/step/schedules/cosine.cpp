// Half a cosine wave from the full rate to zero.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/step/schedules/entries.h"
#include "weft/step/schedules/keys.h"
#include "weft/step/schedules/schedule.h"

namespace weft::step {

double cosine(int64_t step, int64_t total, double rate) {
  const double progress = std::min(1.0, static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, total)));
  return rate * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

ScheduleEntry cosine_entry() {
  return {.name = "cosine",
          .summary = "half a cosine wave, as CosineAnnealingLR",
          .make = [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) {
            return after_rise(schedule, rate, course,
                              [=](int64_t step, int64_t steps) { return cosine(step, steps, rate); });
          }};
}

}  // namespace weft::step
