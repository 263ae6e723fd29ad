// Coefficient of determination: the share of the variance of the values that the predictions explain; 1 at best.
#include "weft/step/metrics/entries.h"

namespace weft::step {

namespace {

/// Three sums for each value: of its squared errors, of itself, of its square. Both of the latter as the loader gives
/// it: standardised.
void add_errors_and_values(const MetricBatch& batch, std::span<double> sums) {
  const Tensor errors = batch.output("squared_errors");
  const size_t columns = sums.size() / 3;
  for (size_t column = 0; column < columns; ++column)
    sums[3 * column] += static_cast<double>(errors.data_as<float>()[column]);
  const auto* value = batch.batch.targets.data_as<float>();
  for (int64_t row = 0; row < batch.batch.count; ++row)
    for (size_t column = 0; column < columns; ++column) {
      const auto y = static_cast<double>(*value++);
      sums[3 * column + 1] += y;
      sums[3 * column + 2] += y * y;
    }
}

std::optional<double> explained_share(std::span<const double> sums, const MetricTotals& totals) {
  double unexplained = 0, spread = 0;
  for (size_t at = 0; at < sums.size(); at += 3) {
    unexplained += sums[at];
    spread += sums[at + 2] - sums[at + 1] * sums[at + 1] / totals.samples;
  }
  return spread > 0 ? std::optional(1 - unexplained / spread) : std::nullopt;
}

}  // namespace

MetricEntry r2_entry() {
  return {.name = "r2",
          .summary = "share of the variance of the values that is explained; 1 at best",
          .label = "R2",
          .outputs = {"squared_errors"},
          .build = add_squared_errors,
          .sums = [](const data::DatasetInfo& info) { return 3 * info.target_shape.elements(); },
          .add = add_errors_and_values,
          .value = explained_share};
}

}  // namespace weft::step
