#include "weft/train/step_scalars.h"

#include <cmath>

#include "weft/train/optimizers/ema.h"
#include "weft/train/optimizers/lookahead.h"
#include "weft/train/schedules/schedule.h"

namespace weft::train {

StepScalars::StepScalars(const RunSpec& spec, int64_t total_steps, int64_t steps_per_epoch)
    : spec_(spec),
      total_steps_(total_steps),
      rate_(make_schedule(spec.schedule, spec.optimizer.learning_rate, total_steps, steps_per_epoch)) {
  for (const auto& [name, group] : spec.optimizer.groups) {
    if (!group.has_own_rate()) continue;
    ScheduleSpec schedule = spec.schedule;
    if (!group.schedule.empty()) schedule.name = group.schedule;
    const int64_t trained_steps =
        group.epochs > 0 ? std::llround(group.epochs * static_cast<double>(steps_per_epoch)) : total_steps;
    group_rates_.emplace_back(
        "learning_rate/" + name,
        [rate = make_schedule(schedule, spec.optimizer.learning_rate, total_steps, steps_per_epoch),
         trained_steps](int64_t step) { return step < trained_steps ? rate(step) : 0.0; });
  }
}

void StepScalars::bind(Executor& batch, Executor* update) {
  inputs_.clear();
  const auto add = [&](Executor& executor, const std::string& name, auto value) {
    if (executor.has_scalar(name)) inputs_.push_back({&executor, name, value});
  };
  const int64_t parts = spec_.accumulate;
  add(batch, "seed", [seed = spec_.seed](int64_t, int64_t, double) { return static_cast<double>(seed); });
  add(batch, "step", [parts](int64_t step, int64_t part, double) { return static_cast<double>(step * parts + part); });
  add(batch, "accumulated", [](int64_t, int64_t part, double) { return part == 0 ? 0.0 : 1.0; });
  Executor& last = update != nullptr ? *update : batch;
  add(last, "update", [](int64_t step, int64_t, double) { return static_cast<double>(step); });
  add(last, "learning_rate", [this](int64_t, int64_t, double) { return learning_rate_; });
  for (const auto& [name, rate] : group_rates_)
    add(last, name, [&rate = rate](int64_t step, int64_t, double factor) { return rate(step) * factor; });
  add(last, "ema_decay", [this](int64_t step, int64_t, double) { return ema_decay(spec_.ema, step); });
  const auto synchronises = [this](int64_t step) {
    return (step + 1) % spec_.lookahead.steps == 0 || step + 1 == total_steps_;  // the run ends on the slow weights
  };
  add(last, "synchronise", [=](int64_t step, int64_t, double) { return synchronises(step) ? 1.0 : 0.0; });
  add(last, "slow_share", [=, this](int64_t step, int64_t, double) {
    return synchronises(step) ? lookahead_alpha(spec_.lookahead, step, total_steps_) : 0.0;
  });
}

void StepScalars::set(int64_t step, int64_t part, double rate_factor) {
  learning_rate_ = rate_(step) * rate_factor;
  for (const Input& input : inputs_) input.executor->set_scalar(input.name, input.value(step, part, rate_factor));
}

}  // namespace weft::train
