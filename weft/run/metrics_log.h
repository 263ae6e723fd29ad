// metrics.jsonl: one JSON object per line, every few steps and after each epoch.
//   {"kind":"step","step":20,"epoch":1,"learning_rate":0.1,"loss":0.52,"batch":128}
//   {"kind":"epoch","step":469,"epoch":1,"train_loss":...,"train_accuracy":...,"test_loss":...,"test_accuracy":...,
//    "train_seconds":...,"images_per_second":...,"step_seconds":...,"input_wait_seconds":...}
// With a validation part, epochs have "validation_loss" and "validation_accuracy" likewise, and evaluations within an
// epoch have records of their own. The test data are then measured once, with the weights of the best checkpoint:
//   {"kind":"validation","step":200,"epoch":1,"validation_loss":...,"validation_accuracy":...,"train_seconds":...}
//   {"kind":"test","step":938,"checkpoint_step":469,"test_loss":...,"test_accuracy":...}
// "batch" is the number of samples in the step. With an image schedule, "image_height" is the height of the images in
// pixels. With a momentum schedule, "momentum" is the momentum. With clip.norm or metrics.gradient_norm, step records
// have "gradient_norm", the norm before clipping. A language model's evaluated epochs have "test_perplexity". Where
// values are predicted, "test_rmse" and "test_r2" replace the accuracies. The rate counts images, rows or tokens and is
// named accordingly. With several ranks, a rank that became slow, or fast again, gets a record:
//   {"kind":"rank_pace","step":210,"rank":3,"host":"b","is_slow":true,"own_seconds":0.42,"others_seconds":0.23,
//    "input_wait_seconds":0.01}
// With metrics.noise_every, squares of norms of gradients on two sizes of batches:
//   {"kind":"noise","step":100,"small_batch":64,"small_square":0.31,"large_batch":128,"large_square":0.22}
// Where ranks have shares of grains, a change of the shares gets one, too; those of all ranks, which hold from the step
// after `from_step` steps on:
//   {"kind":"shares","step":210,"from_step":214,"grains":[11,5],"before":[8,8]}
// The times of a rank_pace are means per step: its own time without waits for others, the median of the others, and its
// waits for batches. "step_seconds" is the time of the epoch's steps; "input_wait_seconds" is the part in which steps
// waited for their batches. "step" counts the steps done; epochs count from 1. A value that was not measured, or is not
// finite, is null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "weft/library/metric.h"
#include "weft/step/metrics.h"
#include "weft/train/ranks/relief.h"
#include "weft/train/ranks/slow_ranks.h"

namespace weft::run {

inline constexpr int64_t kStepsPerRecord = 20;

/// Of the test data after the last step, measured with the weights of a checkpoint.
struct TestMetrics {
  int64_t step = 0;             // steps done
  int64_t checkpoint_step = 0;  // whose weights were measured
  double loss = 0;
  MetricValues metrics{};
};

class MetricsLog {
 public:
  /// Opens for appending. First cuts off records of steps not done at `position` and of epochs that have not ended: a
  /// resumed run writes them again.
  MetricsLog(std::filesystem::path path, const step::Position& position);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// Writes every kStepsPerRecord steps only; allocates nothing.
  void add(const step::StepMetrics& metrics);
  void add(const step::EpochMetrics& metrics);
  void add(const step::ValidationMetrics& metrics);
  void add(const TestMetrics& metrics);
  void add(const step::NoiseMetrics& metrics);
  void add(int64_t step, const train::RankPace& pace, const std::string& host);
  void add(int64_t step, const train::ShareChange& change);
  /// Makes sure that all records added so far survive a power cut. Error(io).
  void sync() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view line);
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace weft::run
