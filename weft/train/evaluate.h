// How well a state does over a whole data set: the loss and the metrics of its task.
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
#include "weft/train/confusion_matrix.h"

namespace weft::train {

struct Evaluation {
  double loss = 0;         // mean over the samples; over tokens or pixels where each has a target that counts
  MetricValues metrics{};  // of EvaluateOptions::metrics, in their order
  int64_t samples = 0;
  double seconds = 0;
  bool finished = true;  // false: stopped on request; the rest is of no use then
};

struct EvaluateOptions {
  /// As the steps are built: step::metrics_of() of the task and the recipe's [metrics].
  std::vector<MetricEntry> metrics = {};
  const spec::MetricsSpec* metric_options = nullptr;  // their keys; null: all at their defaults
  std::function<bool()> stop_requested = {};          // asked before each batch; may be empty
  ConfusionMatrix* confusion = nullptr;               // counts what the step's output "predicted" says; may be null
  std::string tta = "none";                           // as the steps are built: evaluation.tta
  /// Of several ranks, each of which has a loader of its share: the result is that of all together, the same on all.
  /// What one of them is asked to stop, all take for stopped. Without `confusion`.
  comm::Communicator* ranks = nullptr;
  /// With virtual ranks each process divides its rows of a batch among its shards, and all is summed in the order of
  /// the tree over the shards. 0: none.
  int64_t virtual_ranks = 0;
  int64_t batch = 0;  // with them: evaluation.batch
  int place = 0;      // with them: of this process (place_of())
};

/// Runs every batch of the loader once; the last one, where it is smaller, on a plan of its own size, none where this
/// rank has nothing of it. The state's
/// values stay as they are, its layouts may change: bind another executor again afterwards.
Evaluation evaluate(program::Program& program, State& state, data::Loader& loader, const EvaluateOptions& options = {});

}  // namespace weft::train
