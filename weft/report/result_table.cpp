#include "weft/report/result_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>

#include "weft/base/format.h"

namespace weft::report {

namespace {

/// "98.42 %" of "validation_accuracy", "0.0521 nats" of "test_loss".
std::string shown_metric(const Library& library, const TaskEntry& task, const std::string& metric,
                         const std::optional<double>& value) {
  const std::string name = metric.substr(metric.find('_') + 1);
  if (const MetricEntry* entry = find_entry(library.metrics, name)) return shown(*entry, value);
  const std::string unit = task.loss_unit.empty() ? "" : " " + task.loss_unit;
  return (value ? fmt::format("{:.4f}", *value) : "-") + unit;
}

/// What the task is judged by.
void add_results(Table& table, const run::Summary& s, const Library& library, const TaskEntry& task) {
  const auto add_part = [&](const std::string& part, const MetricValues& metrics, const std::optional<double>& loss) {
    const auto best = [&](const std::string& metric) {
      return s.best.name == metric ? fmt::format(" (best {})", shown_metric(library, task, metric, s.best.value)) : "";
    };
    const auto add = [&](const std::string& label, const std::string& name, const std::optional<double>& value) {
      const std::string metric = part + "_" + name;
      table.add_row({part + " " + label, shown_metric(library, task, metric, value) + best(metric)});
    };
    for (const auto& [name, value] : metrics)
      if (const MetricEntry* metric = find_entry(library.metrics, name)) add(metric->label, name, value);
    add("loss", "loss", loss);
  };
  if (!s.validation_metrics.empty()) add_part("validation", s.validation_metrics, s.validation_loss);
  add_part("test", s.test_metrics, s.test_loss);
}

/// "validation_accuracy" as "validation accuracy".
std::string metric_in_words(std::string metric) {
  std::replace(metric.begin(), metric.end(), '_', ' ');
  return metric;
}

/// When the run was as good as it became, and why it ended.
void add_times(Table& table, const run::Summary& s, const Library& library, const TaskEntry& task) {
  const auto add = [&](const char* title, const std::optional<run::Reached>& reached) {
    if (!reached) return;
    table.add_row({title, fmt::format("{} {} after {}, {} steps", metric_in_words(reached->metric),
                                      shown_metric(library, task, reached->metric, reached->value),
                                      human_duration(reached->seconds), reached->step)});
  };
  add("best", s.time_to_best);
  add("target", s.time_to_target);
  if (s.ended.empty()) return;
  const std::string why = s.ended == "stop.patience" ? "no improvement for stop.patience evaluations"
                          : s.ended == "stop.target" ? "stop.target is reached"
                                                     : s.ended + " is reached";
  table.add_row({"ended", fmt::format("{}: after {} of {} epochs", why, s.epochs_done, s.epochs)});
}

}  // namespace

Table result_table(const run::Summary& s, const Library& library) {
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"model", fmt::format("{}, {} parameters", s.model, human_count(static_cast<double>(s.parameters)))});
  const std::string batches =
      s.batches.empty() ? std::to_string(s.batch) : fmt::format("{}", fmt::join(s.batches, ", then "));
  table.add_row({"data", fmt::format("{}, {} epochs of batch {}", s.data, s.epochs, batches)});
  if (!s.image_heights.empty())
    table.add_row({"images", fmt::format("of height {}", fmt::join(s.image_heights, ", then "))});
  const TaskEntry& task = task_entry(library, s.task);
  add_results(table, s, library, task);
  add_times(table, s, library, task);
  const std::string ranks = s.ranks > 1 ? fmt::format("{} ranks of ", s.ranks) : "";
  table.add_row({"time", fmt::format("{} on {}{} threads", human_duration(s.train_seconds), ranks, s.threads)});
  if (s.input_wait_seconds > 0.01 * s.step_seconds)
    table.add_row({"waited", fmt::format("{} for data ({:.1f} % of the steps)", human_duration(s.input_wait_seconds),
                                         100 * s.input_wait_seconds / s.step_seconds)});
  if (s.loss_scale)
    table.add_row({"loss scale", fmt::format("{:g}, {} of {} steps skipped", *s.loss_scale, s.skipped_steps, s.steps)});
  if (s.damaged_samples > 0) table.add_row({"damaged", fmt::format("{} samples, passed over", s.damaged_samples)});
  table.add_row({"speed", fmt::format("{:.0f} {}/s", s.items_per_second, s.item)});
  table.add_row(
      {"memory", fmt::format("{} planned, {} measured", bytes(s.planned_total_bytes), bytes(s.rss_growth_bytes))});
  return table;
}

}  // namespace weft::report
