// Watches a run for what leaves the range of its prediction, and says so, once for each: steps that take longer or
// shorter, memory that grows. Allocates nothing while there is nothing to say.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "weft/predict/prediction.h"

namespace weft::predict {

class Watch {
 public:
  /// Of medians over so many steps; those at the beginning of the run and of each stage do not count.
  static constexpr size_t kWindow = 25;
  static constexpr int kFirstSteps = 5;

  /// Keeps a copy.
  explicit Watch(Prediction prediction);

  /// A step that took so long, waits included. What there is to say, in words.
  std::optional<std::string> on_step(int64_t step, double seconds);
  /// Whether there is something to say of a process that has grown by so many bytes since just before all that is
  /// planned was allocated.
  bool is_news(int64_t grown_bytes) const;
  /// Says it.
  std::optional<std::string> on_memory(int64_t step, int64_t grown_bytes);

  /// An evaluation has ended, so long after the run's first step began; `seconds` counts this process alone.
  void on_evaluation(double seconds) { beside_ = {all_.steps, std::max(0.0, seconds - all_.seconds)}; }

  const Prediction& prediction() const { return prediction_; }
  /// What the whole run takes if it goes on as so far, the first steps aside: steps at their mean, and what was beside
  /// them up to the last evaluation; the evaluations as predicted where there was none. nullopt where too little is
  /// measured.
  std::optional<double> run_seconds() const;

 private:
  /// Steps, and what they took.
  struct Taken {
    int64_t steps = 0;
    double seconds = 0;
  };
  /// From which step on, and for how long, something is so.
  struct Since {
    int64_t step = 0;
    double seconds = 0;
  };
  const StagePrediction* stage_of(int64_t step) const;
  /// True where a window is full: median_ is then its median.
  bool add(int64_t step, double seconds);
  /// Counts windows in a row; true once they have lasted long enough to be told.
  bool lasts(Since& since, bool is_so, int64_t step) const;

  const Prediction prediction_;
  const StagePrediction* stage_ = nullptr;
  std::array<double, kWindow> window_{};
  size_t count_ = 0;  // in the window
  int skipped_ = 0;   // of this stage
  double median_ = 0, first_median_ = 0;
  Taken all_, steady_;  // by this process; without the first steps
  Taken beside_;        // in evaluations and between steps, up to the last evaluation
  Since outside_, slower_;
  bool said_range_ = false, said_slower_ = false, said_memory_ = false;
};

}  // namespace weft::predict
