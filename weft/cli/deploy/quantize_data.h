// The model that `weft quantize` reads, and the samples that it calibrates with, chooses by and measures on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/data/load/loader.h"
#include "weft/library/library.h"
#include "weft/onnx/file/model.h"
#include "weft/quantize/accuracy.h"

namespace weft::cli {

struct QuantizeCommand {
  std::string source, data, output, checkpoint = "auto", calibration = "mse";
  std::string requantize = "float";
  std::vector<double> mean, deviation;
  std::optional<int64_t> samples, test_samples;  // nullopt: 512, and all
  int64_t batch = 32, threads = 0, bits = 8, seed = 0;
  std::optional<int64_t> group;
  int64_t drawn_samples = 0;  // 0: the data's
  double accuracy_drop = -1;  // in points, or in per cent of a perplexity; below 0: no limit
  bool per_tensor = false, symmetric = false, equalizes = false, adaptive = false, keeps_bias = false, force = false;
};

/// The model in f32 with its data; no data where samples are drawn.
struct QuantizeSource {
  onnx::Model model;
  std::unique_ptr<data::Dataset> calibration, test;
  std::unique_ptr<data::Dataset> validation;  // null: the run has no such part
  data::ChannelStatistics statistics;
};
QuantizeSource open_source(const Library& library, const QuantizeCommand& command);

/// What is measured of such data; nullopt: nothing, of the letters in an image.
std::optional<quantize::Criterion> criterion_of(const data::DatasetInfo& info);

/// Batches that a loader makes when they are asked for.
class Batches {
 public:
  /// At most so many samples, or all with 0, without those of the first `skipped` batches.
  Batches(const data::Dataset& dataset, data::LoaderOptions options, int64_t most_samples, int64_t skipped = 0);

  int64_t samples() const { return samples_; }
  quantize::CalibrationData data() const;
  /// With the targets, where `criterion_of` has found what they measure.
  quantize::LabelledData labelled(quantize::Criterion criterion) const;

 private:
  data::Batch load(int64_t index) const { return loader_.load_batch(0, skipped_ + index); }
  int64_t rows_of(const data::Batch& batch, int64_t index) const {
    return std::min(batch.count, samples_ - index * batch_);
  }
  /// Without the rows that fill a batch up.
  Tensor filled_rows(const Tensor& tensor, const data::Batch& batch, int64_t index) const;

  const int64_t skipped_, samples_, batch_;
  const data::Loader loader_;
};

/// Batches of about `count` samples of normally distributed numbers, as the model's one input wants them. Error(usage)
/// where that input is not of f32, or of open size beyond its first axis.
quantize::CalibrationData drawn_samples(const onnx::Model& model, int64_t count, int64_t batch, uint64_t seed);

}  // namespace weft::cli
