// summary.json: the result of a run, with predicted values beside measured ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/library/metric.h"

namespace weft::run {

/// When a metric of the evaluations was first so good.
struct Reached {
  std::string metric;  // such as "validation_accuracy"
  double value = 0;
  double seconds = 0;  // of training, evaluations and checkpoints included
  int64_t step = 0;    // steps done
  friend bool operator==(const Reached&, const Reached&) = default;
};

struct Summary {
  std::string model, data, precision;
  std::string task = "classification";
  std::string item = "images";  // what the rate counts: images, rows or tokens
  int64_t ranks = 1;            // processes that trained as one
  int64_t threads = 0;          // of each of them
  int64_t parameters = 0;
  double epochs = 0;
  int64_t steps = 0, batch = 0, seed = 0;
  std::vector<int64_t> batches = {};        // samples per step of each stage, where they change
  std::vector<int64_t> image_heights = {};  // of training images in pixels, of each stage, where they change
  int64_t epochs_done = 0;                  // begun and ended, less than `epochs` where the run ended early
  std::string ended;  // why it ended before its last epoch: "stop.patience", "stop.target", "max_steps" or
                      // "max_time"; empty: it did not
  MetricValues validation_metrics;        // of the last evaluation, by name; empty without a validation part
  std::optional<double> validation_loss;  // likewise
  MetricValues test_metrics;        // "test_accuracy" in the file: of the last epoch, or with a validation part of the
  std::optional<double> test_loss;  // checkpoint `best`; none without test data
  /// Metric of the checkpoint `best`: "validation_" with the one that decides, or the loss. Runs of weft 0.1 chose it
  /// by "test_" metrics. Without a name: there is no validation part, and `best` is the newest.
  MetricValue best{"", {}};
  std::optional<Reached> time_to_best;  // of what the task is decided by, on the validation part or else the test data
  std::optional<Reached> time_to_target;  // stop.target; none where the recipe has none, or it was not reached
  std::optional<double> train_accuracy, train_loss;  // of the last epoch, measured during it, with augmentation
  double train_seconds = 0;                          // wall time, evaluation and checkpoints included
  double items_per_second = 0;                       // over all training steps
  double step_seconds = 0;                           // total of all training steps
  double input_wait_seconds = 0;                     // part of step_seconds in which steps waited for their batches
  std::vector<double> rank_step_seconds = {};        // per rank, mean per step without waits for the others
  std::vector<int64_t> rank_grains = {};             // per rank, of each batch at the end, where shares may differ
  std::optional<double> loss_scale;                  // at the end, where the loss was scaled
  int64_t skipped_steps = 0;                         // with loss scaling: steps with gradients that were not finite
  int64_t damaged_samples = 0;                       // found and skipped
  double compile_seconds = 0;
  int64_t planned_peak_bytes = 0;   // the training plan's arena
  int64_t arena_bytes = 0;          // what the executor allocated for it
  int64_t planned_total_bytes = 0;  // arenas of all plans, state and loader buffers
  int64_t rss_growth_bytes = 0;     // from just before all of that was allocated to the peak
  int64_t code_growth_bytes = 0;    // of these: code of libraries and of kernels that oneDNN makes
  int64_t peak_rss_bytes = 0;       // of the whole process

  /// test_metric("accuracy"); nullopt where it was not measured.
  std::optional<double> test_metric(std::string_view name) const { return find_metric(test_metrics, name); }
};

/// JSON, indented by two spaces.
std::string print_summary(const Summary& summary);
/// nullopt for any text that print_summary() did not make.
std::optional<Summary> parse_summary(std::string_view text);

}  // namespace weft::run
