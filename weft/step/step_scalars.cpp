#include "weft/step/step_scalars.h"

#include <cmath>

#include "weft/base/rng.h"
#include "weft/step/accumulation.h"
#include "weft/step/global_draws.h"
#include "weft/step/local_steps.h"
#include "weft/step/micro_batches.h"
#include "weft/step/optimizers/ema.h"
#include "weft/step/optimizers/lookahead.h"
#include "weft/step/schedules/schedule.h"
#include "weft/step/virtual_ranks.h"

namespace weft::step {

namespace {

/// Of ranks that train apart, the spec's own for the first.
int64_t seed_of_rank(int64_t seed, int place) {
  if (place == 0) return seed;
  return static_cast<int64_t>(mix(static_cast<uint64_t>(seed), static_cast<uint64_t>(place)) >> 12);
}

}  // namespace

StepScalars::StepScalars(const spec::RunSpec& spec, const spec::Course& course, int ranks, int place,
                         const Entries& entries)
    : spec_(spec),
      course_(course),
      place_(place),
      pieces_(pieces_of_batch(spec, ranks)),
      first_piece_(trains_apart(spec) ? 0 : place * pieces_ / ranks),
      rate_(make_schedule(spec.schedule, spec.optimizer.learning_rate, course, entries)),
      momentum_schedule_(make_momentum_schedule(spec, course)) {
  for (const auto& [name, group] : spec.optimizer.groups) {
    if (!group.has_own_rate()) continue;
    spec::ScheduleSpec schedule = spec.schedule;
    if (!group.schedule.empty()) schedule.name = group.schedule;
    const int64_t trained_steps = group.epochs > 0 ? std::llround(course.step_at(group.epochs)) : course.total_steps();
    group_rates_.emplace_back("learning_rate/" + name,
                              [rate = make_schedule(schedule, spec.optimizer.learning_rate, course, entries),
                               trained_steps](int64_t step) { return step < trained_steps ? rate(step) : 0.0; });
  }
}

void StepScalars::set_grains(int64_t first, double share_of_each) {
  first_piece_ = first;
  share_of_grain_ = share_of_each;
}

void StepScalars::bind(Executor& batch, Executor* update) {
  inputs_.clear();
  const auto add = [&](Executor& executor, const std::string& name, auto value) {
    if (executor.has_scalar(name)) inputs_.push_back({&executor, name, value});
  };
  add(batch, "seed",
      [seed = seed_of_rank(spec_.seed, trains_apart(spec_) ? place_ : 0)](const StepPart&) { return seed; });
  add(batch, kShardIndex, [](const StepPart& at) { return at.shard; });
  add(batch, kDrawPlace, [this](const StepPart& at) { return at.part * pieces_ + first_piece_ + at.shard; });
  // A micro-batch of all ranks comes behind the one before it, as the loader's turns do.
  const int64_t micro_batches = micro_batches_of(spec_), sharers = pieces_ / micro_batches;
  for (int64_t m = 0; m < micro_batches; ++m)
    add(batch, name_of_micro_place(m),
        [=, this](const StepPart& at) { return at.part * pieces_ + m * sharers + first_piece_ / micro_batches; });
  add(batch, "step", [](const StepPart& at) { return at.step; });
  add(batch, "accumulated", [](const StepPart& at) { return at.part == 0 && at.shard == 0 ? 0.0 : 1.0; });
  add(batch, kSumComplete,
      [](const StepPart& at) { return at.part + 1 == at.parts && at.shard + 1 == at.shards ? 1.0 : 0.0; });
  add(batch, "share", [this](const StepPart& at) {
    return share_of_grain_ > 0 ? share_of_grain_ : 1 / static_cast<double>(at.parts * at.shards);
  });
  Executor& last = update != nullptr ? *update : batch;
  add(last, "update", [](const StepPart& at) { return at.step; });
  add(last, "learning_rate", [this](const StepPart&) { return learning_rate_; });
  add(last, "momentum", [this](const StepPart&) { return momentum_; });
  for (const auto& [name, rate] : group_rates_)
    add(last, name, [&rate = rate](const StepPart& at) { return rate(at.step) * at.rate_factor; });
  // Averages of running statistics, which change with each batch, are those after the last.
  add(last, "ema_decay",
      [this](const StepPart& at) { return at.part + 1 == at.parts ? ema_decay(spec_.ema, at.step) : 1.0; });
  const auto synchronises = [this](int64_t step) {
    return (step + 1) % spec_.lookahead.steps == 0 ||
           step + 1 == course_.total_steps();  // the run ends on the slow weights
  };
  add(last, "synchronise", [=](const StepPart& at) { return synchronises(at.step) ? 1.0 : 0.0; });
  add(last, "slow_share", [=, this](const StepPart& at) {
    return synchronises(at.step) ? lookahead_alpha(spec_.lookahead, at.step, course_.total_steps()) : 0.0;
  });
}

void StepScalars::set(const StepPart& at) {
  learning_rate_ = rate_(at.step) * at.rate_factor;
  momentum_ = momentum_schedule_(at.step);
  for (const Input& input : inputs_)
    std::visit([&](auto value) { input.executor->set_scalar(input.name, value); }, input.value(at));
}

}  // namespace weft::step
