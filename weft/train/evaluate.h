// Evaluation: the loss and the metrics of a state over a whole data set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/data/load/loader.h"
#include "weft/device/state.h"
#include "weft/library/metric.h"
#include "weft/program/program.h"
#include "weft/spec/run_spec.h"
#include "weft/train/confusion_matrix.h"

namespace weft::train {

struct Evaluation {
  double loss = 0;         // mean over the samples; over tokens or pixels where each has a target that counts
  MetricValues metrics{};  // of EvaluateOptions::metrics, in their order
  /// Where a sample has several values: the same of each alone, of those metrics that add up by values.
  std::vector<MetricValues> of_values{};
  int64_t samples = 0;
  double seconds = 0;
  bool finished = true;  // false: evaluation was stopped on request, and the other members mean nothing
};

struct EvaluateOptions {
  /// The metrics that the steps were built with: step::metrics_of() of the task and the recipe's [metrics].
  std::vector<MetricEntry> metrics = {};
  spec::MetricsSpec metric_options = {};      // their keys
  std::function<bool()> stop_requested = {};  // asked before each batch; may be empty
  ConfusionMatrix* confusion = nullptr;       // counts the step's output "predicted"; may be null
  std::string tta = "none";                   // evaluation.tta that the steps were built with
  /// With several ranks, each rank has a loader of its share. All ranks return the result of all together. If one rank
  /// is asked to stop, all ranks stop. `confusion` must be null.
  comm::Communicator* ranks = nullptr;
  /// With virtual ranks, each process divides its rows of a batch among its shards, and sums follow the order of the
  /// tree over the shards. 0: none.
  int64_t virtual_ranks = 0;
  int64_t batch = 0;  // with virtual ranks: evaluation.batch
  int place = 0;      // with virtual ranks: place of this process (place_of())
  /// The steps gather weights of which each rank has a part (step::gathering_evaluation()). Then a rank without rows
  /// of a batch runs the step, too, on zeros that nobody counts.
  bool gathers_weights = false;
};

/// Runs every batch of the loader once. A smaller last batch runs on a plan of its own size, or not at all where this
/// rank has no rows of it and the others need nothing of it. The values of the state stay as they are, but its layouts
/// may change: bind another executor again afterwards.
Evaluation evaluate(program::Program& program, State& state, data::Loader& loader, const EvaluateOptions& options = {});

}  // namespace weft::train
