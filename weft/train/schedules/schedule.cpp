// From a recipe's [schedule] to the function that the loop calls.
#include "weft/train/schedules/schedule.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::train {

std::function<double(int64_t step)> make_schedule(const ScheduleSpec& schedule, double learning_rate,
                                                  int64_t total_steps, int64_t steps_per_epoch) {
  const int64_t rising = std::llround(schedule.warmup_epochs * static_cast<double>(steps_per_epoch));
  if (schedule.name == "constant") return [=](int64_t step) { return learning_rate * warm_up(step, rising); };
  if (schedule.name == "cosine")
    return [=](int64_t step) {
      if (step < rising) return learning_rate * warm_up(step, rising);
      return cosine(step - rising, total_steps - rising, learning_rate);
    };
  if (schedule.name != "one_cycle") fail(ErrorKind::internal, "schedule '{}' has no function", schedule.name);
  const OneCycleOptions options{.rise = schedule.rise,
                                .linear_annealing = schedule.annealing == "linear",
                                .start_divisor = schedule.start_divisor,
                                .end_divisor = schedule.end_divisor};
  return [=](int64_t step) { return one_cycle(step, total_steps, learning_rate, options); };
}

}  // namespace weft::train
