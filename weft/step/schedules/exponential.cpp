// A constant factor per so many steps, smoothly or in stairs.
#include <algorithm>
#include <cmath>

#include "weft/step/schedules/entries.h"
#include "weft/step/schedules/keys.h"
#include "weft/step/schedules/schedule.h"

namespace weft::step {

double exponential(double step, double steps_per_factor, double rate, double factor, bool stairs) {
  const double exponent = step / std::max(1.0, steps_per_factor);
  return rate * std::pow(factor, stairs ? std::floor(exponent) : exponent);
}

namespace {

RateOfStep by_epochs(const spec::ScheduleSpec& schedule, double rate, const spec::Course& course, bool stairs) {
  const double every = schedule.every_epochs > 0
                           ? schedule.every_epochs * static_cast<double>(course.steps_of_first_epoch())
                           : course.clock(course.total_steps()) / 3;
  return with_rise(schedule, course, [=, factor = schedule.factor](int64_t step) {
    return exponential(course.clock(step), every, rate, factor, stairs);
  });
}

}  // namespace

ScheduleEntry exponential_entry() {
  return {.name = "exponential",
          .summary = "times a factor every so many epochs, smoothly, as ExponentialLR",
          .keys = {every_epochs_key(), factor_key()},
          .make = [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) {
            return by_epochs(schedule, rate, course, /*stairs=*/false);
          }};
}

ScheduleEntry step_entry() {
  return {.name = "step",
          .summary = "times a factor every so many epochs, as StepLR",
          .keys = {every_epochs_key(), factor_key()},
          .make = [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) {
            return by_epochs(schedule, rate, course, /*stairs=*/true);
          }};
}

}  // namespace weft::step
