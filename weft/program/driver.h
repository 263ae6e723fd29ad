// Runs a program over a State: it decides which phase comes next, binds the state to it, and sets the scalars that
// it reads. Training, evaluation, benchmarks and checks each use a Driver instead of driving executors.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "weft/data/load/loader.h"
#include "weft/device/state.h"
#include "weft/program/program.h"
#include "weft/step/step_scalars.h"

namespace weft::program {

/// Called around the runs of a step; each may be empty. None may allocate where the step loop must not.
struct StepHooks {
  std::function<void(int64_t part)> next_batch = {};                   // before the shards of a batch
  std::function<void(int64_t shard)> bind_batch = {};                  // before each run of Phase::batch
  std::function<void(int64_t part)> batch_done = {};                   // after the shards of a batch
  std::function<void(Executor& executor)> before_run = {};             // of any phase
  std::function<void(Executor& executor)> after_run = {};              // likewise
  std::function<Profile*(Phase phase, int64_t part)> profile_of = {};  // null where a run is not measured
};

class Driver {
 public:
  /// Keeps references to both.
  Driver(Program& program, State& state) : program_(program), state_(state) {}

  /// From now on runs the plans of this shape. Binds the state anew, since other code may have used or changed it.
  void select(const spec::StepShape& shape);
  const spec::StepShape& shape() const { return shape_; }

  bool has(Phase phase) const { return program_.has(phase); }
  const Graph& graph(Phase phase = Phase::batch) { return program_.compiled(shape_, phase).graph; }
  Executor& executor(Phase phase = Phase::batch);
  /// The phase that ends the step, not counting averaging.
  Phase last() const { return has(Phase::update) ? Phase::update : Phase::batch; }
  bool has_output(const std::string& name, Phase phase = Phase::batch) { return step::has_output(graph(phase), name); }

  /// Binds samples and targets of the next run to the model's inputs; takes the `part`th part of the rows.
  void bind_batch(const data::Batch& batch, int64_t part = 0);
  /// Does nothing where the phase has no such scalar.
  template <typename Number>
  void set_scalar(const std::string& name, Number value, Phase phase = Phase::batch) {
    if (executor(phase).has_scalar(name)) executor(phase).set_scalar(name, value);
  }
  /// Runs a phase. Binds the state first where another phase has run since.
  void run(Phase phase = Phase::batch, Profile* profile = nullptr);
  /// One update of the weights: runs the batches, `shards` times each, then the update where it is a phase of its own.
  /// `at` gives the step and its number of batches. Call bind_scalars() before.
  void run_step(step::StepScalars& scalars, const step::StepPart& at, int64_t shards, const StepHooks& hooks);
  void bind_scalars(step::StepScalars& scalars);
  /// Runs what the last run left over. Call it before the state is read.
  void finish();

 private:
  void run_in_step(Phase phase, int64_t part, const StepHooks& hooks);

  Program& program_;
  State& state_;
  spec::StepShape shape_{0};  // of no batch: nothing is selected
  Phase bound_ = Phase::batch;
  std::array<Executor*, kPhases.size()> executors_ = {};  // of the shape, those that were asked for
};

}  // namespace weft::program
