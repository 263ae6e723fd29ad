#include <algorithm>
#include <iterator>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/step/metrics/entries.h"

namespace weft::step {

std::vector<MetricEntry> all_metrics() {
  return {accuracy_entry(), token_accuracy_entry(), mean_iou_entry(), rmse_entry(), r2_entry(),
          mae_entry(),      perplexity_entry()};
}

namespace {

/// Of a text such as "auto, top_3".
std::vector<std::string> listed(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

std::vector<MetricEntry> metrics_of(const Entries& entries, const spec::MetricsSpec& spec, const std::string& task) {
  std::vector<std::string> names = task_entry(entries, task).metrics;
  for (const std::string& name : listed(spec.names))
    if (name != "auto" && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  std::vector<MetricEntry> metrics;
  for (const std::string& name : names) {
    const MetricEntry* metric = find_entry(entries.metrics, name);
    if (metric == nullptr)
      fail(ErrorKind::usage, "there is no metric '{}'{}", name, suggestion(name, names_of(entries.metrics)));
    metrics.push_back(*metric);
  }
  return metrics;
}

std::optional<double> score_of(const Entries& entries, const std::string& task, const MetricValues& values) {
  const MetricEntry* metric = find_entry(entries.metrics, task_entry(entries, task).decided_by);
  if (metric == nullptr) return std::nullopt;
  std::optional<double> score = find_metric(values, metric->name);
  if (score && !metric->higher_is_better) score = -*score;
  return score;
}

}  // namespace weft::step
