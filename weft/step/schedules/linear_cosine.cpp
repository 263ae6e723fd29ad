// A falling line times a cosine wave.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/step/schedules/entries.h"
#include "weft/step/schedules/keys.h"
#include "weft/step/schedules/schedule.h"

namespace weft::step {

double linear_cosine(int64_t step, int64_t total, double rate, const LinearCosineOptions& options) {
  const double progress = std::min(1.0, static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, total)));
  const double wave = (1 + std::cos(2 * std::numbers::pi * options.periods * progress)) / 2;
  return rate * ((options.alpha + 1 - progress) * wave + options.beta);
}

ScheduleEntry linear_cosine_entry() {
  return {
      .name = "linear_cosine",
      .summary = "a falling line times a cosine wave, Bello et al. 2017",
      .keys =
          {{.name = "periods", .value = 0.5, .low = 0, .high = 1e6, .help = "linear_cosine: cosine waves over the run"},
           {.name = "alpha", .value = 0.0, .low = 0, .high = 1, .help = "linear_cosine: added to the line"},
           {.name = "beta", .value = 0.001, .low = 0, .high = 1, .help = "linear_cosine: added to the product"}},
      .make = [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) {
        const LinearCosineOptions options{.periods = schedule.periods, .alpha = schedule.alpha, .beta = schedule.beta};
        return after_rise(schedule, rate, course,
                          [=](int64_t step, int64_t steps) { return linear_cosine(step, steps, rate, options); });
      }};
}

}  // namespace weft::step
