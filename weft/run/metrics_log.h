// metrics.jsonl: one JSON object per line, every few steps and after each epoch.
//   {"kind":"step","step":20,"epoch":1,"learning_rate":0.1,"loss":0.52,"batch":128}
//   {"kind":"epoch","step":469,"epoch":1,"train_loss":...,"train_accuracy":...,"test_loss":...,"test_accuracy":...,
//    "train_seconds":...,"images_per_second":...,"step_seconds":...,"input_wait_seconds":...}
// "batch" are the samples of the step; where an image schedule sizes its images, "image_height" says how high they are;
// where the momentum has a schedule, "momentum" what it is. Where clip.norm or metrics.gradient_norm is set, step
// records have "gradient_norm", as it was before it was bounded. Of a language model evaluated epochs have
// "test_perplexity"; of predicted values "test_rmse" and "test_r2" stand in the place of the accuracies. The rate
// counts images, rows or tokens and is named so. Of several ranks one that became slow, or fast again, has a record:
//   {"kind":"rank_pace","step":210,"rank":3,"host":"b","is_slow":true,"own_seconds":0.42,"others_seconds":0.23,
//    "input_wait_seconds":0.01}
// with means per step of what it takes without waits for others, of their median, and of its waits for batches.
// "step_seconds" are those of the epoch's steps, "input_wait_seconds" those of them in which steps waited for their
// batches. "step" counts the steps done, epochs count from 1. What was not measured, or is no finite number, is null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "weft/step/metrics.h"
#include "weft/train/ranks/slow_ranks.h"

namespace weft::run {

inline constexpr int64_t kStepsPerRecord = 20;

class MetricsLog {
 public:
  /// Opens for appending. Records of steps that are not done at `position` are cut off first, and those of epochs that
  /// have not ended: a resumed run writes them again.
  MetricsLog(std::filesystem::path path, const step::Position& position);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// Writes every kStepsPerRecord steps only; allocates nothing.
  void add(const step::StepMetrics& metrics);
  void add(const step::EpochMetrics& metrics);
  void add(int64_t step, const train::RankPace& pace, const std::string& host);
  /// What was added survives a power cut. Error(io).
  void sync() const;

 private:
  void append(std::string_view line);
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace weft::run
