// Reads metrics.jsonl: every number that a run has recorded, by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace weft::run {

/// One metric over the run; NaN where it was not measured.
struct MetricCurve {
  std::vector<int64_t> steps;  // steps done when it was measured
  std::vector<double> values;
};

struct MetricsHistory {
  std::map<std::string, MetricCurve> by_step;        // "loss", "learning_rate"
  std::map<std::string, MetricCurve> by_validation;  // "validation_loss", of evaluations within epochs
  std::map<std::string, MetricCurve> by_noise;       // "small_square", "large_square" and the batches they are of
  std::map<std::string, MetricCurve> by_epoch;       // "test_accuracy", "train_loss", "train_seconds", "epoch"
};

/// Skips torn lines and lines that are no records, since a run may be writing. Empty where the file does not exist.
/// Error(io) where it cannot be read.
MetricsHistory read_metrics(const std::filesystem::path& path);

}  // namespace weft::run
