// One cycle: from a low rate to the peak, then down to almost nothing; the momentum the other way.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/base/error.h"
#include "weft/step/schedules/entries.h"
#include "weft/step/schedules/keys.h"
#include "weft/step/schedules/schedule.h"

namespace weft::step {

namespace {

double anneal(double from, double to, double progress, bool linear) {
  if (linear) return from + (to - from) * progress;
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

/// From `first` to `peak` to `last`.
double cycle(int64_t step, int64_t total, double first, double peak, double last, const OneCycleOptions& options) {
  // The phase ends are those of PyTorch: at step rise * total - 1 (a real number) and at the last step.
  const double peak_step = options.rise * static_cast<double>(total) - 1;
  const double end_step = static_cast<double>(total - 1);
  const double at = static_cast<double>(std::clamp<int64_t>(step, 0, std::max<int64_t>(0, total - 1)));
  if (at <= peak_step) return anneal(first, peak, peak_step > 0 ? at / peak_step : 1, options.linear_annealing);
  const double length = end_step - std::max(0.0, peak_step);
  const double progress = length > 0 ? (at - std::max(0.0, peak_step)) / length : 1;
  return anneal(peak, last, progress, options.linear_annealing);
}

}  // namespace

double one_cycle(int64_t step, int64_t total, double peak, const OneCycleOptions& options) {
  const double first = peak / options.start_divisor;
  return cycle(step, total, first, peak, first / options.end_divisor, options);
}

double one_cycle_momentum(int64_t step, int64_t total, double low, double high, const OneCycleOptions& options) {
  return cycle(step, total, high, low, high, options);
}

OneCycleOptions one_cycle_options(const spec::ScheduleSpec& schedule) {
  return {.rise = schedule.rise,
          .linear_annealing = schedule.annealing == "linear",
          .start_divisor = schedule.start_divisor,
          .end_divisor = schedule.end_divisor};
}

namespace {

void require_no_warmup(const spec::ScheduleSpec& schedule) {
  if (schedule.warmup_steps != 0)
    fail(ErrorKind::usage,
         "schedule.warmup_steps = {} with schedule.name = 'one_cycle': one_cycle warms up by itself; set schedule.rise",
         schedule.warmup_steps);
  if (schedule.warmup_epochs != 0)
    fail(ErrorKind::usage,
         "schedule.warmup_epochs = {} with schedule.name = 'one_cycle': one_cycle warms up by itself; set "
         "schedule.rise instead",
         schedule.warmup_epochs);
}

}  // namespace

ScheduleEntry one_cycle_entry() {
  return {.name = "one_cycle",
          .summary = "up to the peak and down to nearly nothing, as OneCycleLR",
          .keys = {{.name = "rise",
                    .value = 0.3,
                    .low = 0.001,
                    .high = 0.999,
                    .help = "one_cycle: fraction of the steps before the peak"},
                   {.name = "annealing",
                    .value = "cosine",
                    .choices = {"cosine", "linear"},
                    .help = "one_cycle: cosine or linear"},
                   {.name = "start_divisor",
                    .value = 25.0,
                    .low = 1,
                    .high = 1e9,
                    .help = "one_cycle: first rate = peak / this"},
                   {.name = "end_divisor",
                    .value = 1e4,
                    .low = 1,
                    .high = 1e12,
                    .help = "one_cycle: last rate = first rate / this"}},
          .make = [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) -> RateOfStep {
            return [=, total = course.total_steps(), options = one_cycle_options(schedule)](int64_t step) {
              return one_cycle(step, total, rate, options);
            };
          },
          .check = require_no_warmup};
}

}  // namespace weft::step
