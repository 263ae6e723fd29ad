// summary.json: the result of a run, with predicted values beside measured ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/dataset/dataset.h"

namespace weft::run {

struct Summary {
  std::string model, data, precision;
  std::string task = "classification";
  std::string item = "images";  // what the rate counts: images, rows or tokens
  int64_t ranks = 1;            // processes that trained as one
  int64_t threads = 0;          // of each of them
  int64_t parameters = 0;
  double epochs = 0;
  int64_t steps = 0, batch = 0, seed = 0;
  std::vector<int64_t> batches = {};                 // samples per step of each stage, where they change
  std::vector<int64_t> image_heights = {};           // of training images in pixels, of each stage, where they change
  MetricValues test_metrics;                         // of the last epoch, by name; "test_accuracy" in the file
  std::optional<double> test_loss;                   // of the last epoch; none without test data
  MetricValue best{"loss", {}};                      // metric of the checkpoint `best`: the one that decides, or the
                                                     // loss
  std::optional<double> train_accuracy, train_loss;  // of the last epoch, measured during it, with augmentation
  double train_seconds = 0;                          // wall time, evaluation and checkpoints included
  double items_per_second = 0;                       // over all training steps
  double step_seconds = 0;                           // total of all training steps
  double input_wait_seconds = 0;                     // part of step_seconds in which steps waited for their batches
  std::vector<double> rank_step_seconds = {};        // per rank, mean per step without waits for the others
  std::optional<double> loss_scale;                  // at the end, where the loss was scaled
  int64_t skipped_steps = 0;                         // with loss scaling: steps with gradients that were not finite
  int64_t damaged_samples = 0;                       // found and skipped
  double compile_seconds = 0;
  int64_t planned_peak_bytes = 0;   // the training plan's arena
  int64_t arena_bytes = 0;          // what the executor allocated for it
  int64_t planned_total_bytes = 0;  // arenas of all plans, state and loader buffers
  int64_t rss_growth_bytes = 0;     // from just before all of that was allocated to the peak
  int64_t peak_rss_bytes = 0;       // of the whole process

  /// test_metric("accuracy"); nullopt where it was not measured.
  std::optional<double> test_metric(std::string_view name) const { return find_metric(test_metrics, name); }
};

/// JSON, indented by two spaces.
std::string print_summary(const Summary& summary);
/// nullopt for any text that print_summary() did not make.
std::optional<Summary> parse_summary(std::string_view text);

}  // namespace weft::run
