// A training step as `weft bench` and `weft explain` measure it: planned alike on every rank, then run on batches of
// random content.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/graph/collective.h"
#include "weft/library/library.h"
#include "weft/program/autotune.h"
#include "weft/program/cost_profile.h"
#include "weft/program/driver.h"
#include "weft/program/program.h"
#include "weft/program/rank_runtime.h"
#include "weft/program/synthetic.h"
#include "weft/step/data_parallel.h"
#include "weft/step/sharded_states.h"
#include "weft/step/step.h"

namespace weft::program {

class PlannedStep;

/// What is to be measured.
struct StepChoice {
  spec::RunSpec spec;             // resolved; `batch` is what this rank computes at a time
  models::ModelInput input;       // of this rank
  int64_t batches = 1;            // per step: accumulated, or of shards
  bool forward = false;           // inference
  int64_t evaluation_memory = 0;  // of a rank that also evaluates, as a run does (step::gathered_bytes); 0: none does
  const PlannedStep* trained_by = nullptr;  // of inference: on the state of that step; null: on whole weights
  std::vector<std::string> without = {};    // passes
  int64_t bucket_bytes = 0;                 // see passes::Ranks
  std::function<Tuning(int64_t threads)> tuning = {};  // asked for on the first rank alone
  /// Brings the step under its limit, if it has one; what is planned beside the arena.
  std::function<void(StepCache& steps, int64_t other_bytes)> limit = {};
  const char* where_too_large = "";  // the next step for the user
};

class PlannedStep {
 public:
  /// Compiles; exchanges nothing with other ranks.
  PlannedStep(const Library& library, const StepChoice& choice, const RankRuntime& runtime, const CostProfile& profile,
              Tuning tuning, const Note& note);
  PlannedStep(const PlannedStep&) = delete;
  PlannedStep& operator=(const PlannedStep&) = delete;

  const spec::RunSpec& spec() const { return choice_.spec; }
  const StepChoice& choice() const { return choice_; }
  const Device& device() const { return *device_; }
  const CompiledStep& compiled() { return program_.compiled(spec().batch); }
  /// Null where the step is one graph.
  const CompiledStep* compiled_update() { return compiled_phase(Phase::update); }
  /// The mean of the ranks' states; null where they do not train apart.
  const CompiledStep* compiled_averaging() { return compiled_phase(Phase::averaging); }
  /// The mean of their weights alone; null where each mean is of all states.
  const CompiledStep* compiled_weight_averaging() { return compiled_phase(Phase::weight_averaging); }
  /// What the planner was told of the ranks.
  const passes::Ranks& ranks() const { return options_.ranks; }
  /// The costs of nodes that the planner used.
  const CostModel& costs() const { return *options_.costs; }
  /// Of the ranks along an axis; null where this one is alone there.
  comm::Collectives* collectives(const std::string& axis = kDataAxis) const {
    const auto found = runtime_.axes().find(axis);
    return found == runtime_.axes().end() ? nullptr : found->second.get();
  }
  /// Of all ranks, for the messages of a pipeline; null where there is none, or the process is alone.
  comm::Collectives* messages() const { return runtime_.messages().get(); }
  /// The number of this one in the mesh of the step.
  int rank() const;
  /// Of the rank's step in a pipeline; null: there is none.
  const step::PipelineOutlook* pipeline() const { return training_.pipeline ? &*training_.pipeline : nullptr; }
  /// Bytes of memory: the larger arena, the states, a batch.
  int64_t total_bytes();
  /// What its graphs and kernels take beside that; an estimate.
  int64_t graph_and_kernel_bytes();
  /// Of the states that a rank keeps: weights, statistics, those of the optimiser.
  int64_t state_bytes() const { return step::state_bytes(training_); }
  /// Of memory that messages between hosts need beside the arena.
  int64_t message_buffer_bytes();
  /// Whether evaluations gather the parts of weights layer by layer, as a run with this step does.
  bool gathers_in_evaluation() const {
    return choice_.evaluation_memory > 0 && step::gathers_in_evaluation(training_, spec(), choice_.evaluation_memory);
  }
  bool gathers_along_data() const { return step::gathers_along_data(training_); }
  /// Of whole weights that a rank has parts of, which evaluations put together; 0 where they do not.
  int64_t gathered_bytes() const {
    return choice_.evaluation_memory == 0 ? 0 : step::gathered_bytes(training_, spec(), choice_.evaluation_memory);
  }

  /// Checks before any memory is taken. Error(usage) where the machine has too little memory, Error(io) where its disk
  /// has too little space.
  void require_memory(const Note& note);

 private:
  int64_t bytes_beside_arena();
  Graph inference(const Library& library) const;
  friend class RunningStep;
  const CompiledStep* compiled_phase(Phase phase) {
    return program_.has(phase) ? &program_.compiled(spec().batch, phase) : nullptr;
  }

  StepChoice choice_;
  const RankRuntime& runtime_;
  const std::unique_ptr<Device> device_;
  const step::TrainingStep training_;
  const CompileOptions options_;
  Program program_;
};

/// Plans on every rank what `choose` returns on this rank. Errors reach all ranks (comm::on_all_ranks). Lines for the
/// user go to `note`.
struct PlannedOnRanks {
  std::unique_ptr<RankRuntime> runtime;
  std::unique_ptr<PlannedStep> step;
};
PlannedOnRanks plan_on_ranks(const Library& library, comm::Communicator* ranks, const Note& note,
                             const std::function<StepChoice()>& choose);

/// A planned step with memory and a state. All ranks make it together. Keep the plan alive.
class RunningStep {
 public:
  explicit RunningStep(PlannedStep& planned);
  /// Runs one step. `of_update` profiles the update. Where the update belongs to the graph of the batches, it profiles
  /// the last batch, which `of_batches` includes too.
  void run(Profile* of_batches = nullptr, Profile* of_update = nullptr);
  /// The graph whose outputs are those of the whole step.
  Executor& last();
  void finish() { driver_.finish(); }
  /// A mean of the ranks' states or weights, of a step that has one.
  void average(Phase averaging, Profile* profile);

 private:
  const StepChoice& choice_;
  const int64_t shards_;
  State state_;
  Driver driver_;
  SyntheticBatch batch_;
  const spec::RunSpec spec_;
  const spec::Course course_;
  step::StepScalars scalars_;
};

}  // namespace weft::program
