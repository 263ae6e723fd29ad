#include "weft/report/run_curves.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/data/texts/utf8.h"
#include "weft/run/run_directory.h"

namespace weft::report {

namespace {

using run::MetricCurve;

/// nullopt where all epochs are alike.
std::optional<spec::Course> course_of_epochs(const Library& library, const run::RunDirectory& directory) {
  const spec::RunSpec spec = directory.read_spec(library);
  std::error_code code;
  if (spec::stages_of(spec).size() == 1 || !std::filesystem::exists(directory.data(), code)) return std::nullopt;
  const int64_t samples = directory.read_data().samples;
  if (samples == 0) return std::nullopt;  // not known
  return spec::Course(spec, samples);
}

const MetricCurve* find_curve(const std::map<std::string, MetricCurve>& curves, const std::string& name) {
  const auto found = curves.find(name);
  return found == curves.end() ? nullptr : &found->second;
}

bool has_values(const MetricCurve& curve) {
  return std::any_of(curve.values.begin(), curve.values.end(), [](double value) { return std::isfinite(value); });
}

/// Both, by their steps; of a step that both have, the value of `first`.
MetricCurve merged_by_step(const MetricCurve& first, const MetricCurve& second) {
  MetricCurve merged;
  size_t other = 0;
  const auto add = [&](const MetricCurve& curve, size_t index) {
    merged.steps.push_back(curve.steps[index]);
    merged.values.push_back(curve.values[index]);
  };
  for (size_t index = 0; index < first.steps.size(); ++index) {
    for (; other < second.steps.size() && second.steps[other] <= first.steps[index]; ++other)
      if (second.steps[other] < first.steps[index]) add(second, other);
    add(first, index);
  }
  for (; other < second.steps.size(); ++other) add(second, other);
  return merged;
}

struct FoundCurve {
  MetricCurve curve;
  bool is_of_steps = false;
};

/// Nothing where the run has no value of it. Evaluations within epochs count too, unless only epochs have their times.
std::optional<FoundCurve> find_metric_curve(const RunCurves& run, const std::string& metric, const std::string& x) {
  if (const MetricCurve* steps = find_curve(run.history.by_step, metric); steps != nullptr && has_values(*steps))
    return FoundCurve{*steps, true};
  const MetricCurve* epochs = find_curve(run.history.by_epoch, metric);
  const MetricCurve* within = x == "seconds" ? nullptr : find_curve(run.history.by_validation, metric);
  FoundCurve found{epochs != nullptr ? *epochs : MetricCurve(), false};
  if (within != nullptr) found.curve = merged_by_step(found.curve, *within);
  if (!has_values(found.curve)) return std::nullopt;
  return found;
}

/// Steps in an epoch, from the first epoch that ended; 0 before.
double steps_of_epoch(const run::MetricsHistory& history) {
  const MetricCurve* epochs = find_curve(history.by_epoch, "epoch");
  if (epochs == nullptr || epochs->values.empty() || epochs->values.front() < 1) return 0;
  return static_cast<double>(epochs->steps.front()) / epochs->values.front();
}

/// Where the points lie on the horizontal axis; empty where the run cannot say.
std::vector<double> places_of(const RunCurves& run, const FoundCurve& found, const std::string& x) {
  if (x == "seconds") {
    const MetricCurve* seconds = find_curve(run.history.by_epoch, "train_seconds");
    return !found.is_of_steps && seconds != nullptr ? seconds->values : std::vector<double>{};
  }
  std::vector<double> result;
  if (x == "epoch" && run.course) {
    for (const int64_t step : found.curve.steps)
      result.push_back(run.course->clock(step) / static_cast<double>(run.course->steps_of_first_epoch()));
    return result;
  }
  const double scale = x == "epoch" ? steps_of_epoch(run.history) : 1;
  if (scale == 0) return result;
  for (const int64_t step : found.curve.steps) result.push_back(static_cast<double>(step) / scale);
  return result;
}

/// "train" of "train_loss"; the whole name of a metric that is of no part of the data.
std::string part_of(const std::string& metric) {
  for (const char* part : {"train", "validation", "test"})
    if (metric.starts_with(std::string(part) + "_")) return part;
  return metric;
}

class CurveFigure {
 public:
  CurveFigure(const Library& library, const std::vector<RunCurves>& runs, const CurveOptions& options)
      : library_(library), runs_(runs), options_(options) {}

  /// The metrics that the runs have, each of every run, in one panel. Several metrics are those of parts of the data.
  plot::Panel panel(const std::string& title, const std::vector<std::string>& metrics) {
    plot::Panel panel{.title = title, .x_label = options_.x, .series = {}, .whole_x = options_.x != "seconds"};
    panel.is_share = std::all_of(metrics.begin(), metrics.end(), [&](const auto& name) { return is_share(name); });
    for (size_t index = 0; index < runs_.size(); ++index)
      for (const std::string& metric : metrics) add(panel, static_cast<int>(index), metric, metrics.size() > 1);
    return panel;
  }

 private:
  bool is_share(const std::string& metric) const {
    const std::string part = part_of(metric);
    const MetricEntry* entry = find_entry(library_.metrics, part == metric ? metric : metric.substr(part.size() + 1));
    return entry != nullptr && entry->is_share;
  }

  /// Of one run, metrics have the colours.
  int group_of(const std::string& curve) {
    const auto found = std::find(coloured_.begin(), coloured_.end(), curve);
    if (found != coloured_.end()) return static_cast<int>(found - coloured_.begin());
    coloured_.push_back(curve);
    return static_cast<int>(coloured_.size()) - 1;
  }

  void add(plot::Panel& panel, int index, const std::string& metric, bool several) {
    const RunCurves& run = runs_[static_cast<size_t>(index)];
    std::optional<FoundCurve> found = find_metric_curve(run, metric, options_.x);
    if (!found) return;
    std::vector<double> places = places_of(run, *found, options_.x);
    if (places.size() != found->curve.values.size()) return;
    const bool is_noisy = found->is_of_steps && (metric.find("loss") != std::string::npos || metric == "gradient_norm");
    const bool is_alone = runs_.size() == 1;
    const std::string part = several ? part_of(metric) : metric;
    const std::string words = several && part == "loss" ? "train, each step" : part;
    plot::Series series{.name = is_alone  ? words
                                : several ? fmt::format("{}: {}", run.name, words)
                                          : run.name,
                        .x = std::move(places),
                        .y = std::move(found->curve.values),
                        .group = is_alone ? group_of(part) : index};
    if (several && part == "train") series.line = plot::Line::dashed;
    if (several && !is_alone && part == "validation") series.line = plot::Line::dotted;
    if (is_noisy) {
      plot::Series raw = series;
      raw.faint = true;
      panel.series.push_back(std::move(raw));
      // One value that is far from all others would else hide the curve for a while.
      const auto [low, high] = plot::usual_range(series.y);
      for (double& value : series.y)
        if (std::isfinite(value)) value = std::clamp(value, low, high);
      series.y = plot::smooth(series.y, options_.smoothing);
      if (is_alone) series.name += " (smoothed)";
    }
    panel.series.push_back(std::move(series));
  }

  const Library& library_;
  const std::vector<RunCurves>& runs_;
  const CurveOptions& options_;
  std::vector<std::string> coloured_;
};

bool any_has(const std::vector<RunCurves>& runs, const std::string& metric) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const RunCurves& run) { return find_metric_curve(run, metric, "step").has_value(); });
}

std::vector<std::string> recorded_metrics(const std::vector<RunCurves>& runs) {
  std::vector<std::string> names;
  for (const RunCurves& run : runs)
    for (const auto* curves : {&run.history.by_step, &run.history.by_epoch, &run.history.by_validation})
      for (const auto& [name, curve] : *curves)
        if (name != "epoch" && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

}  // namespace

std::string name_of_run(const std::string& path) {
  const std::filesystem::path run = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path trimmed = run.has_filename() ? run : run.parent_path();
  const std::string name = trimmed.filename().string();
  return data::printable_utf8(
      name.empty() || name == "." || name == ".." ? std::filesystem::absolute(run).lexically_normal().string() : name);
}

std::vector<RunCurves> read_curves(const Library& library, const std::vector<std::string>& paths) {
  std::vector<RunCurves> runs;
  for (const std::string& path : paths) {
    const run::RunDirectory directory = run::RunDirectory::open(path);
    runs.push_back({name_of_run(path), run::read_metrics(directory.metrics()), course_of_epochs(library, directory)});
  }
  std::vector<std::string> names;
  for (const RunCurves& run : runs) names.push_back(run.name);
  for (size_t index = 0; index < runs.size(); ++index)
    if (std::count(names.begin(), names.end(), names[index]) > 1) runs[index].name = data::printable_utf8(paths[index]);
  return runs;
}

plot::Figure draw_curves(const Library& library, const std::vector<RunCurves>& runs, CurveOptions options) {
  if (options.x.empty()) {
    const bool all_have_epochs =
        std::all_of(runs.begin(), runs.end(), [](const RunCurves& run) { return steps_of_epoch(run.history) > 0; });
    options.x = all_have_epochs ? "epoch" : "step";
  }
  CurveFigure maker(library, runs, options);
  plot::Figure figure;
  if (runs.size() == 1) figure.title = runs.front().name;
  if (!options.metrics.empty()) {
    for (const std::string& metric : options.metrics) {
      if (!any_has(runs, metric))
        fail(ErrorKind::usage, "no run has the metric '{}'; they have {}", metric,
             fmt::join(recorded_metrics(runs), ", "));
      figure.panels.push_back(maker.panel(metric, {metric}));
    }
  } else {
    // The parts in this order take the same colours in every picture of one run.
    std::vector<std::string> losses = {"train_loss", "validation_loss", "test_loss"};
    if (runs.size() == 1 && options.x != "seconds") losses.emplace_back("loss");
    if (!any_has(runs, "train_loss")) losses = {"loss"};  // before the end of the first epoch
    figure.panels.push_back(maker.panel("loss", losses));
    const std::vector<std::string> accuracies = {"train_accuracy", "validation_accuracy", "test_accuracy"};
    if (std::any_of(accuracies.begin(), accuracies.end(), [&](const auto& name) { return any_has(runs, name); }))
      figure.panels.push_back(maker.panel("accuracy", accuracies));
  }
  for (const plot::Panel& panel : figure.panels)
    if (panel.series.empty())
      fail(ErrorKind::usage, "'{}' cannot be drawn over {} before the first epoch has ended; try --x step", panel.title,
           options.x);
  return figure;
}

}  // namespace weft::report
