// Mean absolute error of predicted values, in their own unit; over several, the mean of theirs.
#include "weft/ops/ops.h"
#include "weft/step/metrics/entries.h"

namespace weft::step {

namespace {

/// f32[K], of each value, summed over the rows.
void add_absolute_errors(const MetricCall& call) {
  if (!call.predicts_values()) return;
  call.add_output("absolute_errors", [&] {
    Graph& graph = call.graph;
    const ValueId errors =
        ops::absolute(graph, ops::subtract(graph, call.model.logits, call.model.labels), "distances");
    return ops::reduce_sum(graph, errors, {0}, false, "absolute_errors");
  });
}

void add_distances(const MetricBatch& batch, std::span<double> sums) {
  const Tensor errors = batch.output("absolute_errors");
  for (size_t column = 0; column < sums.size(); ++column)
    sums[column] += static_cast<double>(errors.data_as<float>()[column]);
}

std::optional<double> mean_in_own_unit(std::span<const double> sums, const MetricTotals& totals) {
  const std::vector<double>& deviation = totals.info.targets.deviation;
  double mean = 0;
  for (size_t at = 0; at < sums.size(); ++at)
    mean += (deviation.empty() ? 1 : deviation[at]) * sums[at] / totals.samples / static_cast<double>(sums.size());
  return mean;
}

}  // namespace

MetricEntry mae_entry() {
  return {.name = "mae",
          .summary = "mean absolute error, in the unit of the values",
          .label = "MAE",
          .higher_is_better = false,
          .outputs = {"absolute_errors"},
          .build = add_absolute_errors,
          .sums = [](const data::DatasetInfo& info) { return info.target_shape.elements(); },
          .add = add_distances,
          .value = mean_in_own_unit};
}

}  // namespace weft::step
