#include "weft/report/prediction_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/predict/curves.h"
#include "weft/predict/noise_scale.h"
#include "weft/run/earlier_runs.h"
#include "weft/run/metrics_history.h"
#include "weft/run/prediction_file.h"
#include "weft/run/summary.h"

namespace weft::report {

namespace {

using predict::Part;

/// One line of the comparison; a measured value below 0 is not known, as little as a prediction that is not there.
struct Row {
  std::string what;
  std::optional<predict::Interval> predicted;
  double measured = -1;
  bool has_range = false;
  std::string (*shown)(double) = human_duration;
};

std::array<double, predict::kParts> measured_parts(const Explained& explained) {
  std::map<std::string, Part> parts;
  const auto add = [&](const CompiledStep& step, bool is_update) {
    const std::vector<Part> of = predict::parts_of(step.graph, is_update);
    for (size_t index = 0; index < of.size(); ++index)
      parts.try_emplace(step.graph.node_name(NodeId{static_cast<int32_t>(index)}), of[index]);
  };
  add(*explained.compiled, false);
  if (explained.update != nullptr) add(*explained.update, true);
  std::array<double, predict::kParts> seconds{};
  for (const OpProfile& node : explained.nodes)
    if (const auto part = parts.find(node.name); part != parts.end())
      seconds[static_cast<size_t>(part->second)] += node.seconds;
  return seconds;
}

std::optional<run::Summary> summary_of(const run::RunDirectory& run) {
  std::error_code code;
  if (!std::filesystem::exists(run.summary(), code)) return std::nullopt;
  return run::parse_summary(read_text(run.summary()));
}

std::vector<Row> rows_of(const run::RunDirectory& run, const predict::Prediction& prediction,
                         const Explained& explained) {
  const predict::StagePrediction& stage = prediction.longest();
  const auto measured = measured_parts(explained);
  std::vector<Row> rows;
  const auto exactly = [](double value) { return predict::Interval{value, value, value}; };
  double all = 0;
  for (int part = 0; part < predict::kParts; ++part) {
    const auto of = static_cast<Part>(part);
    all += measured[static_cast<size_t>(part)];
    const bool is_there = stage.time.of(of) > 0 || measured[static_cast<size_t>(part)] > 0;
    if (is_there)
      rows.push_back(
          {std::string(predict::name_of(of)), exactly(stage.time.of(of)), measured[static_cast<size_t>(part)]});
  }
  rows.push_back({"step without loading", predict::interval_of(stage.time.whole(), stage.time.spread), all, true});
  const std::optional<run::Summary> summary = summary_of(run);
  if (!summary || summary->steps == 0) return rows;
  const auto steps = static_cast<double>(summary->steps);
  Row waits{"in training: waits for batches", std::nullopt, summary->input_wait_seconds / steps};
  if (stage.loading_seconds) waits.predicted = exactly(*stage.loading_seconds);
  rows.push_back(waits);
  rows.push_back({"in training: step", prediction.step(), summary->step_seconds / steps, true});
  if (summary->ended.empty())
    rows.push_back({"in training: whole run", prediction.run_seconds(), summary->train_seconds, true});
  if (summary->time_to_target && prediction.to_target && prediction.to_target->reached > 0)
    rows.push_back(
        {"in training: to the target", prediction.to_target->seconds, summary->time_to_target->seconds, true});
  rows.push_back({"in training: memory", exactly(static_cast<double>(prediction.memory.total())),
                  static_cast<double>(summary->rss_growth_bytes), false, human_bytes});
  return rows;
}

std::string error_of(const Row& row) {
  if (row.measured < 0 || !row.predicted || row.predicted->expected <= 0 || row.measured == 0) return "-";
  return fmt::format("{:+.1f} %", 100 * (row.predicted->expected / row.measured - 1));
}

}  // namespace

std::string prediction_text(const run::RunDirectory& run, const Explained& explained) {
  const std::optional<predict::Prediction> prediction = run::read_prediction(run, {});
  if (!prediction || prediction->stages.empty()) return "";
  Table table({{"predicted before the run"},
               {"expected", Align::right},
               {"80 %", Align::right},
               {"measured", Align::right},
               {"error", Align::right}});
  for (const Row& row : rows_of(run, *prediction, explained)) {
    std::string range;
    if (row.has_range && row.predicted)
      range = fmt::format("{} to {}{}", row.shown(row.predicted->low), row.shown(row.predicted->high),
                          row.predicted->holds(row.measured) ? "" : ", missed");
    table.add_row({row.what, row.predicted ? row.shown(row.predicted->expected) : "not known", range,
                   row.shown(row.measured), error_of(row)});
  }
  return fmt::format("\n{}known from {}\n", table.text(), prediction->times_from);
}

nlohmann::ordered_json prediction_json(const run::RunDirectory& run, const Explained& explained) {
  const std::optional<predict::Prediction> prediction = run::read_prediction(run, {});
  if (!prediction || prediction->stages.empty()) return nullptr;
  auto rows = nlohmann::ordered_json::array();
  for (const Row& row : rows_of(run, *prediction, explained)) {
    rows.push_back({{"what", row.what}, {"expected", nullptr}, {"measured", row.measured}});
    if (row.predicted) rows.back()["expected"] = row.predicted->expected;
    if (row.has_range && row.predicted)
      rows.back().update({{"low", row.predicted->low}, {"high", row.predicted->high}});
  }
  return rows;
}

std::string target_text(const run::RunDirectory& run, const spec::RunSpec& spec, const Entries& entries) {
  const std::optional<predict::Target> target = run::target_of(spec, entries);
  const std::optional<predict::Prediction> prediction = run::read_prediction(run, {});
  if (!target || !prediction || prediction->stages.empty()) return "";
  const std::optional<run::Summary> summary = summary_of(run);
  if (summary && summary->time_to_target) return "";
  const std::vector<std::pair<int64_t, double>> points =
      run::points_of(run::read_metrics(run.metrics()), target->metric);
  const std::optional<predict::Interval> steps = predict::steps_by_own_curve(points, *target, prediction->steps());
  if (!steps)
    return fmt::format("\n{} {} by this run's own curve: {} evaluations are too few to say when\n", target->metric,
                       target->value, points.size());
  const double step = summary && summary->steps > 0 ? summary->step_seconds / static_cast<double>(summary->steps)
                                                    : prediction->step().expected;
  const auto when = [&](double count) {
    return std::isfinite(count) ? fmt::format("step {:.0f}, {}", count, human_duration(count * step))
                                : fmt::format("not within its {} steps", prediction->steps());
  };
  return fmt::format("\n{} {} by this run's own curve of {} evaluations: {} (80 %: {} to {})\n", target->metric,
                     target->value, points.size(), when(steps->expected), when(steps->low), when(steps->high));
}

std::string noise_text(const run::RunDirectory& run, int64_t batch) {
  const run::MetricsHistory history = run::read_metrics(run.metrics());
  const auto values = [&](const char* name) -> const run::MetricCurve* {
    const auto found = history.by_noise.find(name);
    return found == history.by_noise.end() ? nullptr : &found->second;
  };
  const run::MetricCurve *small = values("small_square"), *large = values("large_square"),
                         *small_batch = values("small_batch"), *large_batch = values("large_batch");
  if (small == nullptr || large == nullptr || small_batch == nullptr || large_batch == nullptr) return "";
  std::vector<predict::GradientNorms> norms;
  for (size_t at = 0; at < std::min({small->values.size(), large->values.size(), small_batch->values.size(),
                                     large_batch->values.size()});
       ++at)
    norms.push_back(
        {small->steps[at], small_batch->values[at], small->values[at], large_batch->values[at], large->values[at]});
  const std::string text = predict::describe_noise_scale(norms, batch);
  return text.empty() ? "" : "\n" + text;
}

}  // namespace weft::report
