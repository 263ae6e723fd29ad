// Root of the mean squared error of predicted values, in their own unit; over several, the root of the mean of the
// squares.
#include <cmath>

#include "weft/ops/ops.h"
#include "weft/step/metrics/entries.h"

namespace weft::step {

void add_squared_errors(const MetricCall& call) {
  if (!call.predicts_values()) return;
  call.add_output("squared_errors", [&] {
    Graph& graph = call.graph;
    const ValueId errors = ops::square(graph, ops::subtract(graph, call.model.logits, call.model.labels), "squares");
    return ops::reduce_sum(graph, errors, {0}, false, "squared_errors");
  });
}

namespace {

void add_errors(const MetricBatch& batch, std::span<double> sums) {
  const Tensor errors = batch.output("squared_errors");
  for (size_t column = 0; column < sums.size(); ++column)
    sums[column] += static_cast<double>(errors.data_as<float>()[column]);
}

std::optional<double> root_of_mean(std::span<const double> sums, const MetricTotals& totals) {
  const std::vector<double>& deviation = totals.info.targets.deviation;
  double mean_square = 0;
  for (size_t at = 0; at < sums.size(); ++at) {
    const double unit = deviation.empty() ? 1 : deviation[at];
    mean_square += unit * unit * sums[at] / totals.samples / static_cast<double>(sums.size());
  }
  return std::sqrt(mean_square);
}

}  // namespace

MetricEntry rmse_entry() {
  return {.name = "rmse",
          .summary = "root of the mean squared error, in the unit of the values",
          .label = "rmse",
          .higher_is_better = false,
          .outputs = {"squared_errors"},
          .build = add_squared_errors,
          .sums = [](const data::DatasetInfo& info) { return info.target_shape.elements(); },
          .add = add_errors,
          .value = root_of_mean};
}

}  // namespace weft::step
