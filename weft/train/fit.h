// The training loop: it runs the steps, evaluates after epochs, and calls hooks that watch or save. It knows neither
// files nor kernels.
#pragma once

#include <functional>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"
#include "weft/data/load/loader.h"
#include "weft/device/state.h"
#include "weft/program/program.h"
#include "weft/spec/run_spec.h"
#include "weft/step/metrics.h"
#include "weft/train/ranks/relief.h"
#include "weft/train/ranks/slow_ranks.h"

namespace weft::train {

/// Hooks of the training loop. Each may be empty. on_step must not allocate.
struct Hooks {
  std::function<void(const step::StepMetrics&)> on_step;
  std::function<void(const step::EpochMetrics&)> on_epoch;         // before the checkpoint, to write what it relies on
  std::function<void(const step::EpochMetrics&)> tell_epoch = {};  // after the checkpoint, to inform the user
  std::function<void(const step::ValidationMetrics&)> on_validation = {};  // of evaluations within an epoch
  std::function<void(const step::NoiseMetrics&)> on_noise = {};
  /// Makes a checkpoint: when the spec asks for one, after the last epoch, and before an interrupted loop returns.
  std::function<void(const step::Position&)> save;
  bool saves_together = false;  // whether all ranks take part in a checkpoint, and have to decide on it together
  /// Called when one of several ranks became slow, or fast again; `step` counts the steps done.
  std::function<void(int64_t step, const RankPace&)> on_rank_pace = {};
  /// Called when the ranks' shares of the batches are about to change.
  std::function<void(int64_t step, const ShareChange&)> on_shares = {};
  std::function<bool()> stop_requested;  // asked after each step and each batch of an evaluation
  /// The loop stops, as if it was asked to, once so many epochs are done, or where it would end before. 0: it does not.
  int64_t pause_epochs = 0;
};

struct FitInputs {
  const spec::RunSpec& spec;
  program::Program& training;
  program::Program& evaluation;
  State& state;
  data::Loader& training_data;
  data::Loader* evaluation_data;  // the test data; null: nothing to evaluate on
  /// With several ranks: each rank has loaders of its share and programs for that share. The programs name their steps
  /// by the batch of all ranks together. Null: this process trains alone.
  comm::Communicator* ranks = nullptr;
  std::vector<comm::Collectives*> collectives = {};  // of the steps, which fit() tells where the run is; none: alone
  const Entries& entries = standard_entries();       // the entries that the spec names
  /// Null: the spec sets nothing aside. With it, fit() evaluates the test data only where [evaluation] or a metric that
  /// decides something asks for it: the caller does so once, with the best weights.
  data::Loader* validation_data = nullptr;
  const step::TrainingStep* step = nullptr;  // of which ranks share states; null: they share none
  /// step::build_gradient_probe(), by the same shapes as `training`, where the spec asks for the gradient noise.
  program::Program* noise = nullptr;
  bool gathers_in_evaluation = false;  // the steps of `evaluation` do (step::gathering_evaluation())
};

struct FitResult {
  step::Position position;
  bool finished = false;  // false: stopped by stop_requested; position.ended says why it ended before its last epoch
  bool paused = false;    // stopped by Hooks::pause_epochs
  /// per rank, mean seconds per step without waits for the others; empty where ranks have not exchanged them
  std::vector<double> rank_step_seconds = {};
};

/// Trains from `position` to the end of the last epoch, or to what spec.max_steps, spec.max_time or spec.stop set.
/// Error(numeric), with step and learning rate, where the loss is not finite. With loss scaling, the loop skips and
/// counts such a step, and only many in a row are an error. After the first step of each plan the loop allocates
/// nothing. Several ranks do the same steps, and their metrics are those of all ranks. If one rank is asked to stop,
/// all stop after the same step. A loss that is not finite is then a SharedError, which names the ranks where it arose.
FitResult fit(const FitInputs& inputs, const step::Position& position, const Hooks& hooks);

}  // namespace weft::train
