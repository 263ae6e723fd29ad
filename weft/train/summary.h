// summary.json: the result of a run, with what the plan promised beside what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::train {

struct Summary {
  std::string model, data, precision;
  int64_t threads = 0;
  int64_t parameters = 0;
  int64_t epochs = 0, steps = 0, batch = 0, seed = 0;
  std::optional<double> test_accuracy, test_loss;    // of the last epoch; none without test data
  std::optional<double> best_test_accuracy;          // of the checkpoint `best`
  std::optional<double> train_accuracy, train_loss;  // of the last epoch, with augmentation, while it went on
  double train_seconds = 0;                          // wall time, evaluation and checkpoints included
  double images_per_second = 0;                      // over all training steps
  double compile_seconds = 0;
  int64_t planned_peak_bytes = 0;   // the training plan's arena
  int64_t arena_bytes = 0;          // what the executor allocated for it
  int64_t planned_total_bytes = 0;  // arenas of all plans, state and loader buffers
  int64_t rss_growth_bytes = 0;     // from just before all of that was allocated to the peak
  int64_t peak_rss_bytes = 0;       // of the whole process
};

/// JSON, two spaces deep.
std::string print_summary(const Summary& summary);
/// nullopt for anything but what print_summary() gave.
std::optional<Summary> parse_summary(std::string_view text);

}  // namespace weft::train
