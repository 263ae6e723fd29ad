#include "weft/library/metric.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"

namespace weft {

std::optional<double> find_metric(const MetricValues& values, std::string_view name) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const MetricValue& one) { return one.name == name; });
  return found == values.end() ? std::nullopt : found->value;
}

void MetricCall::add_output(const std::string& name, const std::function<ValueId()>& make) const {
  const auto& outputs = graph.outputs();
  if (std::any_of(outputs.begin(), outputs.end(), [&](const GraphOutput& one) { return one.name == name; })) return;
  graph.add_output(name, make());
}

int64_t MetricEntry::sum_count(const data::DatasetInfo& info) const {
  if (sums) return sums(info);
  return outputs.empty() ? 0 : 1;
}

std::string shown(const MetricEntry& metric, const std::optional<double>& value) {
  if (metric.is_share) return percent(value);
  return value ? fmt::format("{:.5g}", *value) : "-";
}

}  // namespace weft
