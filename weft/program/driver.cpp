#include "weft/program/driver.h"

namespace weft::program {

void Driver::select(const spec::StepShape& shape) {
  Executor& batch = program_.executor(shape);
  batch.bind_state(state_);
  // Only now: a shape that could not be made or bound is not selected.
  shape_ = shape;
  executors_ = {&batch};
  bound_ = Phase::batch;
}

Executor& Driver::executor(Phase phase) {
  Executor*& known = executors_[static_cast<size_t>(phase)];
  if (known == nullptr) known = &program_.executor(shape_, phase);
  return *known;
}

void Driver::bind_batch(const data::Batch& batch, int64_t part) { step::bind_batch(executor(), graph(), batch, part); }

void Driver::run(Phase phase, Profile* profile) {
  Executor& to_run = executor(phase);
  if (bound_ != phase) {
    to_run.bind_state(state_);
    bound_ = phase;
  }
  to_run.run(profile);
}

void Driver::bind_scalars(step::StepScalars& scalars) {
  scalars.bind(executor(), has(Phase::update) ? &executor(Phase::update) : nullptr);
}

void Driver::run_in_step(Phase phase, int64_t part, const StepHooks& hooks) {
  if (hooks.before_run) hooks.before_run(executor(phase));
  run(phase, hooks.profile_of ? hooks.profile_of(phase, part) : nullptr);
  if (hooks.after_run) hooks.after_run(executor(phase));
}

void Driver::run_step(step::StepScalars& scalars, const step::StepPart& at, int64_t shards, const StepHooks& hooks) {
  step::StepPart now = at;
  now.shards = shards;
  for (now.part = 0; now.part < at.parts; ++now.part) {
    if (hooks.next_batch) hooks.next_batch(now.part);
    for (now.shard = 0; now.shard < shards; ++now.shard) {
      if (hooks.bind_batch) hooks.bind_batch(now.shard);
      scalars.set(now);
      run_in_step(Phase::batch, now.part, hooks);
    }
    if (hooks.batch_done) hooks.batch_done(now.part);
  }
  if (has(Phase::update)) run_in_step(Phase::update, at.parts, hooks);
}

void Driver::finish() { executor().finish(); }

}  // namespace weft::program
