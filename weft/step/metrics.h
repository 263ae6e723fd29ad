// Metrics during a run: where it stands and how well it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/library/metric.h"

namespace weft::step {

/// What the schedule `plateau` remembers between epochs.
struct PlateauState {
  double factor = 1;             // of the learning rate
  std::optional<double> best{};  // of the measure so far
  int64_t bad_epochs = 0;        // since then, or since the last reduction
  int64_t cooldown = 0;          // epochs still to come that do not count
  friend bool operator==(const PlateauState&, const PlateauState&) = default;
};

/// What [stop] remembers between evaluations.
struct StoppingState {
  std::optional<double> best{};   // of the metric so far
  int64_t evaluations_since = 0;  // that were no improvement
  friend bool operator==(const StoppingState&, const StoppingState&) = default;
};

/// State of ranks that average their weights from time to time.
struct AveragingState {
  double first_loss = 0;  // of the steps before the first mean; 0: there was none yet
  int64_t period = 0;     // steps from one mean to the next; 0: as the recipe has it
  friend bool operator==(const AveragingState&, const AveragingState&) = default;
};

/// Where a run continues, with the sums of the epoch so far: enough to resume exactly.
struct Position {
  int64_t epoch = 0;          // from 0
  int64_t step_in_epoch = 0;  // from 0
  int64_t step = 0;           // steps (updates of the weights) done since the start of the run
  double loss_sum = 0;        // over the samples of this epoch
  double correct = 0;
  int64_t samples = 0;
  double epoch_seconds = 0;       // spent in this epoch's training steps
  double train_seconds = 0;       // wall time of the run so far, evaluation and checkpoints included
  double step_seconds = 0;        // wall time of all training steps so far
  double epoch_wait_seconds = 0;  // of epoch_seconds, in which steps waited for their batches
  double wait_seconds = 0;        // of step_seconds
  PlateauState plateau = {};
  StoppingState stopping = {};
  int64_t validated_step = 0;  // steps done at the last evaluation within an epoch; 0: there was none
  std::string ended = {};      // why the run ended before its last epoch: "max_time"; empty: it did not
  AveragingState averaging = {};
  std::vector<int64_t> grains = {};  // of each rank, where batches are cut into grains
};

struct StepMetrics {
  int64_t epoch = 0;  // from 0
  int64_t step = 0;   // the step just done, from 0
  int64_t steps = 0;  // of the whole run
  double learning_rate = 0;
  double loss = 0;                        // of this step's batch
  int64_t samples = 0;                    // since the start of the run
  int64_t batch = 0;                      // samples of this step
  int64_t image_height = 0;               // of its images, where they are not as the data have them; else 0
  std::optional<double> momentum{};       // where a schedule moves it
  std::optional<double> gradient_norm{};  // before it was bounded, where the recipe bounds or records it
  double wait_share = 0;                  // of the epoch's time so far, in which steps waited for their batches
  std::optional<double> loss_scale{};     // after the step, where the loss is scaled
  int64_t skipped_steps = 0;              // since the start of the run, because of gradients that were not finite
  double seconds = 0;                     // that the step took, waits for its batches included
};

struct EpochMetrics {
  int64_t epoch = 0;  // from 0
  int64_t step = 0;   // steps done since the start of the run
  double train_loss = 0;
  std::optional<double> train_accuracy{};   // of classes, tokens and whole sequences
  std::optional<double> validation_loss{};  // where the epoch was evaluated on the validation part
  MetricValues validation_metrics{};        // likewise: those of the task and of the recipe, by name
  std::optional<double> test_loss{};        // where the epoch was evaluated on the test data
  MetricValues test_metrics{};              // likewise: those of the task and of the recipe, by name
  double train_seconds = 0;                 // since the start of the run: with test_accuracy, time to accuracy
  double items_per_second = 0;              // of this epoch's training steps
  std::string_view item = "images";         // what they are: "images", "rows" or "tokens"
  double step_seconds = 0;                  // of this epoch's training steps
  double input_wait_seconds = 0;            // of those, in which steps waited for their batches
  std::optional<double> loss_scale{};       // as for steps
  int64_t skipped_steps = 0;                // since the start of the run
};

/// Squares of the norms of the gradient of the same weights on two sizes of batches, from which the gradient noise
/// follows (predict/noise_scale.h).
struct NoiseMetrics {
  int64_t step = 0;  // steps done
  double small_batch = 0, small_square = 0;
  double large_batch = 0, large_square = 0;
};

/// An evaluation of the validation part, at the end of an epoch or within it.
struct ValidationMetrics {
  int64_t epoch = 0;  // from 0
  int64_t step = 0;   // steps done since the start of the run
  double loss = 0;
  MetricValues metrics{};
  double train_seconds = 0;  // since the start of the run
};

}  // namespace weft::step
