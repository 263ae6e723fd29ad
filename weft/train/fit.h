// The training loop: batches in, steps, evaluation after epochs, hooks for everything that watches or saves.
// It knows neither files nor kernels.
#pragma once

#include <functional>

#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"
#include "weft/data/load/loader.h"
#include "weft/device/state.h"
#include "weft/program/program.h"
#include "weft/spec/run_spec.h"
#include "weft/step/metrics.h"
#include "weft/train/ranks/slow_ranks.h"

namespace weft::train {

/// All may be empty. on_step must not allocate.
struct Hooks {
  std::function<void(const step::StepMetrics&)> on_step;
  std::function<void(const step::EpochMetrics&)> on_epoch;  // before its checkpoint: to write down what it will rely on
  std::function<void(const step::EpochMetrics&)> tell_epoch = {};  // after it: for people
  /// To make a checkpoint: when the spec says so, after the last epoch, and before an interrupted loop returns.
  std::function<void(const step::Position&)> save;
  /// After so many steps: a rank of several that became slow, or fast again.
  std::function<void(int64_t step, const RankPace&)> on_rank_pace = {};
  std::function<bool()> stop_requested;  // asked after each step and each batch of an evaluation
};

struct FitInputs {
  const spec::RunSpec& spec;
  program::Program& training;
  program::Program& evaluation;
  State& state;
  data::Loader& training_data;
  data::Loader* evaluation_data;  // null: nothing to evaluate on
  /// Of several ranks, each of which has loaders of its share, and programs for that, which know their steps by the
  /// batch of all ranks together. Null: alone.
  comm::Communicator* ranks = nullptr;
  comm::Collectives* collectives = nullptr;     // of the steps, to be told where the run is; null: alone
  const Entries& entries = standard_entries();  // that the spec names
};

struct FitResult {
  step::Position position;
  bool finished = false;  // false: stopped by stop_requested
  /// By rank, mean seconds per step without waits for the others; empty where they have not been exchanged.
  std::vector<double> rank_step_seconds = {};
};

/// Goes from `position` to the end of the last epoch. Error(numeric) naming step and learning rate where the loss is no
/// finite number; where it is scaled, such a step is left out and counted, and only many in a row are an error. After
/// the first step of each plan the loop allocates nothing.
/// Several ranks do the same steps: their metrics are those of all, and what one of them is asked to stop ends all
/// after the same step. A loss that is not finite is a SharedError, which names the ranks that it comes from.
FitResult fit(const FitInputs& inputs, const step::Position& position, const Hooks& hooks);

}  // namespace weft::train
