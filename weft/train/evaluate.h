// How well a state does over a whole data set: loss and accuracy, or, where values are predicted, their errors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/data/load/loader.h"
#include "weft/device/state.h"
#include "weft/program/program.h"
#include "weft/train/confusion_matrix.h"

namespace weft::train {

struct Evaluation {
  double loss = 0;                   // mean over the samples; over tokens or pixels where each has a target that counts
  std::optional<double> accuracy{};  // in [0, 1]; of classes and tokens, of sequences those that are right as a whole
  std::optional<double> token_accuracy{};  // of translations: of each token, given those before it
  std::optional<double> mean_iou{};        // of pixels: intersection over union, the mean of the classes that occur
  std::optional<double> rmse{};  // of values, in their own unit; over several, the root of the mean of the squares
  std::optional<double> r2{};    // share of the variance of the values that is explained; 1 at best
  int64_t samples = 0;
  double seconds = 0;
  bool finished = true;  // false: stopped on request; the rest is of no use then
};

struct EvaluateOptions {
  std::function<bool()> stop_requested = {};  // asked before each batch; may be empty
  ConfusionMatrix* confusion = nullptr;       // counts what the step's output "predicted" says; may be null
  std::string tta = "none";                   // as the steps are built: evaluation.tta
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
