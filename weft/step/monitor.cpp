#include "weft/step/monitor.h"

namespace weft::step {

namespace {

/// "accuracy" of "validation_accuracy"
std::string metric_of(const std::string& monitor) { return monitor.substr(monitor.find('_') + 1); }

}  // namespace

std::optional<double> monitored(const std::string& monitor, const EpochMetrics& metrics) {
  const std::string metric = metric_of(monitor);
  if (monitor.starts_with("train_")) return metric == "loss" ? metrics.train_loss : metrics.train_accuracy;
  const bool validates = monitor.starts_with("validation_");
  if (metric == "loss") return validates ? metrics.validation_loss : metrics.test_loss;
  return find_metric(validates ? metrics.validation_metrics : metrics.test_metrics, metric);
}

bool higher_is_better(const std::string& monitor, const Entries& entries) {
  const std::string metric = metric_of(monitor);
  if (metric == "loss") return false;
  const MetricEntry* entry = find_entry(entries.metrics, metric);
  return entry == nullptr || entry->higher_is_better;
}

bool measures_test_data_each_time(const spec::RunSpec& spec) {
  const std::string& wanted = spec.evaluation.test_data;
  const bool decides = (spec.schedule.name == "plateau" && spec.schedule.monitor.starts_with("test_")) ||
                       spec.stop.monitor.starts_with("test_");
  return decides || wanted == "each_time" || (wanted == "auto" && !spec::has_validation(spec));
}

}  // namespace weft::step
