// From a recipe's [schedule] to the function that the loop calls.
#include "weft/step/schedules/schedule.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft::step {

namespace {

int64_t rising_steps(const spec::ScheduleSpec& schedule, const spec::Course& course) {
  if (schedule.warmup_steps > 0) return std::min(schedule.warmup_steps, course.total_steps());
  return std::llround(course.step_at(schedule.warmup_epochs));
}

}  // namespace

RateOfStep after_rise(const spec::ScheduleSpec& schedule, double learning_rate, const spec::Course& course,
                      std::function<double(int64_t step, int64_t steps)> fall) {
  const int64_t rising = rising_steps(schedule, course), falling = course.total_steps() - rising;
  return [=, fall = std::move(fall)](int64_t step) {
    return step < rising ? learning_rate * warm_up(step, rising) : fall(step - rising, falling);
  };
}

RateOfStep with_rise(const spec::ScheduleSpec& schedule, const spec::Course& course, RateOfStep rate) {
  return [rising = rising_steps(schedule, course), rate = std::move(rate)](int64_t step) {
    return rate(step) * warm_up(step, rising);
  };
}

RateOfStep make_momentum_schedule(const spec::RunSpec& spec, const spec::Course& course) {
  const spec::MomentumScheduleSpec& momentum = spec.optimizer.momentum_schedule;
  if (momentum.name == "one_cycle")
    return [=, total = course.total_steps(), options = one_cycle_options(spec.schedule), low = momentum.low,
            high = momentum.high](int64_t step) { return one_cycle_momentum(step, total, low, high, options); };
  if (momentum.name == "piecewise") {
    // Levels and lines of a rate of 1.
    const spec::ScheduleSpec levels{
        .name = "piecewise", .boundaries = momentum.boundaries, .factors = momentum.momenta, .lines = momentum.lines};
    return piecewise_rate(levels, 1, course);
  }
  return [constant = spec.optimizer.momentum](int64_t) { return constant; };
}

RateOfStep make_schedule(const spec::ScheduleSpec& schedule, double learning_rate, int64_t total_steps,
                         int64_t steps_per_epoch) {
  return make_schedule(schedule, learning_rate, spec::Course(total_steps, steps_per_epoch));
}

RateOfStep make_schedule(const spec::ScheduleSpec& schedule, double learning_rate, const spec::Course& course,
                         const Entries& entries) {
  const ScheduleEntry* entry = find_entry(entries.schedules, schedule.name);
  if (entry == nullptr)
    fail(ErrorKind::usage, "there is no schedule '{}'{}", schedule.name,
         suggestion(schedule.name, names_of(entries.schedules)));
  return entry->make(schedule, learning_rate, course);
}

}  // namespace weft::step
