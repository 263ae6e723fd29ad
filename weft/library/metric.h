// What an evaluation measures beside the loss: metrics as entries, and the values that they take.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/load/loader.h"
#include "weft/graph/graph.h"
#include "weft/library/key.h"
#include "weft/models/model.h"

namespace weft::spec {
struct MetricsSpec;
}

namespace weft {

/// One metric of one evaluation.
struct MetricValue {
  std::string name;             // of the entry: "accuracy"
  std::optional<double> value;  // nullopt: it was not measured, or it is not defined
  friend bool operator==(const MetricValue&, const MetricValue&) = default;
};

/// In the order in which reports show them.
using MetricValues = std::vector<MetricValue>;

/// nullopt where there is none of that name, too.
std::optional<double> find_metric(const MetricValues& values, std::string_view name);

/// The graph of an evaluation, to which a metric adds outputs.
struct MetricCall {
  Graph& graph;
  const models::Model& model;        // `logits` and `labels` as a loss has them; its own `correct` where it has one
  const models::ModelInput& input;   // what it was built for; `batch` samples
  const spec::MetricsSpec& options;  // [metrics] of the recipe

  /// Real values are to be predicted: labels are f32, as the logits.
  bool predicts_values() const { return graph.type(model.labels).dtype == DType::f32; }
  /// Adds `make()` under the name, unless another metric has added it already.
  void add_output(const std::string& name, const std::function<ValueId()>& make) const;
};

/// A batch that the graph has seen.
struct MetricBatch {
  std::function<Tensor(const std::string&)> output;  // f32, of the names in MetricEntry::outputs
  const data::Batch& batch;                          // rows from `count` on mean nothing
  const data::DatasetInfo& info;
};

/// What an evaluation counted in all.
struct MetricTotals {
  double samples = 0;
  double predictions = 0;  // labels that count; at least 1
  double loss = 0;         // the mean over them
  const data::DatasetInfo& info;
  const spec::MetricsSpec& options;
};

struct MetricEntry {
  std::string name;              // "mean_iou": records and reports call it "test_mean_iou"
  std::string summary = {};      // a line
  std::string label = {};        // for people: "mean IoU"; empty: the name
  bool is_share = false;         // shown in percent
  bool higher_is_better = true;  // where it decides which checkpoint is the best
  std::vector<Key> keys = {};    // of [metrics] that it reads, by their short names
  /// Outputs of the graph that add() reads. Where the graph has not all of them the metric has no value: a model may
  /// not give such answers.
  std::vector<std::string> outputs = {};
  std::function<void(const MetricCall&)> build = {};  // adds them, where the model can; empty: it needs none
  /// How many numbers are summed over all batches; empty: one, or none where there are no outputs.
  std::function<int64_t(const data::DatasetInfo&)> sums = {};
  /// Adds one batch to the sums. Empty: adds the first output, a scalar.
  std::function<void(const MetricBatch&, std::span<double> sums)> add = {};
  /// From the sums of all batches of all ranks. Empty: the first sum over MetricTotals::predictions.
  std::function<std::optional<double>(std::span<const double> sums, const MetricTotals&)> value = {};

  int64_t sum_count(const data::DatasetInfo& info) const;
};

/// "93.12 %" or "0.5123"; "-" where there is no value.
std::string shown(const MetricEntry& metric, const std::optional<double>& value);

}  // namespace weft
