// From a recipe's [schedule] to the function that the loop calls.
#include "weft/step/schedules/schedule.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::step {

namespace {

using Rate = std::function<double(int64_t step)>;

/// A schedule over all steps that follow a warm-up.
template <typename Fall>
Rate after_rise(int64_t rising, double learning_rate, Fall fall) {
  return [=](int64_t step) { return step < rising ? learning_rate * warm_up(step, rising) : fall(step - rising); };
}

OneCycleOptions one_cycle_options(const spec::ScheduleSpec& schedule) {
  return {.rise = schedule.rise,
          .linear_annealing = schedule.annealing == "linear",
          .start_divisor = schedule.start_divisor,
          .end_divisor = schedule.end_divisor};
}

Rate make_one_cycle(const spec::ScheduleSpec& schedule, double learning_rate, int64_t total_steps) {
  const OneCycleOptions options = one_cycle_options(schedule);
  return [=](int64_t step) { return one_cycle(step, total_steps, learning_rate, options); };
}

Rate make_piecewise(const spec::ScheduleSpec& schedule, double learning_rate, const spec::Course& course) {
  std::vector<double> steps = schedule.boundaries;
  for (double& boundary : steps) boundary *= static_cast<double>(course.steps_of_first_epoch());
  return [=, factors = schedule.factors, factor = schedule.factor, lines = schedule.lines](int64_t step) {
    const double at = course.clock(step);
    return lines ? piecewise_lines(at, steps, factors, learning_rate)
                 : piecewise(at, steps, factors, factor, learning_rate);
  };
}

}  // namespace

std::function<double(int64_t)> make_momentum_schedule(const spec::RunSpec& spec, const spec::Course& course) {
  const spec::MomentumScheduleSpec& momentum = spec.optimizer.momentum_schedule;
  if (momentum.name == "one_cycle")
    return [=, total = course.total_steps(), options = one_cycle_options(spec.schedule), low = momentum.low,
            high = momentum.high](int64_t step) { return one_cycle_momentum(step, total, low, high, options); };
  if (momentum.name == "piecewise") {
    // Levels and lines of a rate of 1.
    const spec::ScheduleSpec levels{
        .name = "piecewise", .boundaries = momentum.boundaries, .factors = momentum.momenta, .lines = momentum.lines};
    return make_piecewise(levels, 1, course);
  }
  return [constant = spec.optimizer.momentum](int64_t) { return constant; };
}

Rate make_schedule(const spec::ScheduleSpec& schedule, double learning_rate, int64_t total_steps,
                   int64_t steps_per_epoch) {
  return make_schedule(schedule, learning_rate, spec::Course(total_steps, steps_per_epoch));
}

Rate make_schedule(const spec::ScheduleSpec& schedule, double learning_rate, const spec::Course& course) {
  const std::string& name = schedule.name;
  const int64_t total_steps = course.total_steps();
  const int64_t rising = std::llround(course.step_at(schedule.warmup_epochs)), falling = total_steps - rising;
  if (name == "one_cycle") return make_one_cycle(schedule, learning_rate, total_steps);
  if (name == "cosine")
    return after_rise(rising, learning_rate, [=](int64_t step) { return cosine(step, falling, learning_rate); });
  if (name == "polynomial")
    return after_rise(rising, learning_rate,
                      [=, power = schedule.power, end_factor = schedule.end_factor](int64_t step) {
                        return polynomial(step, falling, learning_rate, power, end_factor);
                      });
  if (name == "linear_cosine") {
    const LinearCosineOptions options{.periods = schedule.periods, .alpha = schedule.alpha, .beta = schedule.beta};
    return after_rise(rising, learning_rate,
                      [=](int64_t step) { return linear_cosine(step, falling, learning_rate, options); });
  }
  Rate rate;
  if (name == "constant" || name == "plateau") {
    rate = [=](int64_t) { return learning_rate; };
  } else if (name == "step" || name == "exponential") {
    const double every = schedule.every_epochs > 0
                             ? schedule.every_epochs * static_cast<double>(course.steps_of_first_epoch())
                             : course.clock(total_steps) / 3;
    rate = [=, factor = schedule.factor, stairs = name == "step"](int64_t step) {
      return exponential(course.clock(step), every, learning_rate, factor, stairs);
    };
  } else if (name == "piecewise") {
    rate = make_piecewise(schedule, learning_rate, course);
  } else {
    fail(ErrorKind::internal, "schedule '{}' has no function", name);
  }
  return [=](int64_t step) { return rate(step) * warm_up(step, rising); };
}

}  // namespace weft::step
