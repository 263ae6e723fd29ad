// All that is decided about a run before it allocates memory: data, graphs, plans.
#pragma once

#include <memory>
#include <optional>

#include "weft/comm/communicator.h"
#include "weft/device/device.h"
#include "weft/library/library.h"
#include "weft/program/automatic_precision.h"
#include "weft/program/cost_profile.h"
#include "weft/program/program.h"
#include "weft/program/rank_runtime.h"
#include "weft/program/run_data.h"
#include "weft/spec/course.h"
#include "weft/spec/run_spec.h"
#include "weft/step/step.h"

namespace weft::program {

class PreparedRun {
 public:
  /// Opens the data and compiles every plan that the run will need; this settles the choice of kernels. Reserves the
  /// space of the spec.offload file. Keeps a reference to the library. `note` takes lines for the user. With several
  /// ranks, it takes this rank's share of each batch and of the host's memory, and exchanges nothing with other ranks:
  /// they make all that takes part in collectives together beforehand and pass it as `rank_runtime`. Error(usage) where
  /// the machine has too little memory, Error(io) where the disk has too little space.
  PreparedRun(const Library& run_library, const spec::RunSpec& run_spec, Tuning tuning = {},
              const std::function<void(const std::string&)>& note = {}, comm::Communicator* communicator = nullptr,
              RankRuntime rank_runtime = RankRuntime(nullptr, 1), CostProfile profile = {});
  PreparedRun(const PreparedRun&) = delete;
  PreparedRun& operator=(const PreparedRun&) = delete;

  /// The training step that takes the most memory.
  spec::StepShape largest();
  /// Makes the executors of every training step and its update, in an arena that is as large on all ranks that share
  /// memory: what does not fit fails here. All ranks call it at the same time.
  void make_executors();
  /// For a step of this shape, the shape that this rank computes at a time.
  spec::StepShape own_part(const spec::StepShape& shape) const;

  const Library& library;
  comm::Communicator* const ranks;  // null: alone
  spec::RunSpec spec;
  const BatchShare training_share;    // of the batches that it trains on
  const BatchShare evaluation_share;  // of those that it evaluates
  RunData run_data;
  spec::Course course;
  std::vector<spec::StepShape> shapes;  // of the training step, over the run, of all ranks together
  const RankRuntime runtime;
  const CostProfile cost_profile;  // by which all of it is planned
  const std::unique_ptr<Device> device;
  const std::optional<PrecisionTimes> precision_times;  // where spec.precision was auto and had to be measured
  step::TrainingStep step;                              // of the first shape
  const bool gathers_in_evaluation;                     // layer by layer (step::gathering_evaluation())
  std::shared_ptr<Arena> arena;                         // of all steps, which run in turn
  Program training;                                     // by the shape of all ranks' batches together
  Program evaluation;                                   // by the samples of this rank's own
  /// By the shapes of `training`, where the spec asks for the gradient noise: a part of a step's batch.
  std::optional<Program> noise;
  double compile_seconds = 0;
  int64_t planned_total_bytes = 0;  // what training will add to what the data takes now: arena, state, buffers, caches
  /// What its graphs and kernels take beside that; an estimate.
  int64_t graph_and_kernel_bytes() const;

 private:
  int64_t bytes_beside_arena() const;
  std::vector<const Graph*> graphs() const;
  int64_t message_buffer_bytes() const;
  int64_t bytes_to_come() const;
  /// What this process evaluates at a time of a batch of so many samples.
  std::vector<int64_t> evaluated_rows(int64_t count) const;
  step::TrainingStep build_training(const spec::StepShape& shape) const;
  CompileOptions evaluation_options() const;
  void add_noise_probe();
  void require_measured(const char* key, const std::string& monitor) const;
  void compile_training();
  void limit_caches();
  /// Of all memory that the ranks of this host have.
  int64_t memory_of_rank() const;
  void require_memory() const;
};

}  // namespace weft::program
