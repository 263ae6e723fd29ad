// weft plot: loss and accuracy curves of runs, in the terminal or as SVG or PNG.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/progress.h"
#include "weft/cli/command.h"
#include "weft/data/texts/utf8.h"
#include "weft/plot/figure.h"
#include "weft/run/metrics_history.h"
#include "weft/run/run_directory.h"
#include "weft/spec/course.h"

namespace weft::cli {

namespace {

constexpr int kTextRows = 14;

struct PlotOptions {
  std::vector<std::string> runs, metrics;
  std::string output, x;
  double smoothing = 0.9;
};

struct RunCurves {
  std::string name;
  run::MetricsHistory history;
  std::optional<spec::Course> course = {};  // where epochs differ in their steps
};

std::string name_of(const std::filesystem::path& run) {
  const std::filesystem::path trimmed = run.has_filename() ? run : run.parent_path();
  return data::printable_utf8(trimmed.filename().string());
}

/// nullopt where all epochs are alike.
std::optional<spec::Course> course_of(const Library& library, const run::RunDirectory& directory) {
  const spec::RunSpec spec = directory.read_spec(library);
  std::error_code code;
  if (spec::stages_of(spec).size() == 1 || !std::filesystem::exists(directory.data(), code)) return std::nullopt;
  const int64_t samples = directory.read_data().samples;
  if (samples == 0) return std::nullopt;  // not known
  return spec::Course(spec, samples);
}

RunCurves read_run(const Library& library, const std::string& path) {
  const run::RunDirectory directory = run::RunDirectory::open(path);
  RunCurves run{name_of(path), run::read_metrics(directory.metrics()), course_of(library, directory)};
  if (run.history.by_step.empty() && run.history.by_epoch.empty())
    fail(ErrorKind::usage, "'{}' has no metrics yet; let it train for some more steps", path);
  return run;
}

const run::MetricCurve* find(const std::map<std::string, run::MetricCurve>& curves, const std::string& name) {
  const auto found = curves.find(name);
  return found == curves.end() ? nullptr : &found->second;
}

/// Steps in an epoch, from the first epoch that ended; 0 before.
double steps_per_epoch(const run::MetricsHistory& history) {
  const run::MetricCurve* epochs = find(history.by_epoch, "epoch");
  if (epochs == nullptr || epochs->values.empty() || epochs->values.front() < 1) return 0;
  return static_cast<double>(epochs->steps.front()) / epochs->values.front();
}

/// Where the points lie on the horizontal axis; empty where the run cannot say.
std::vector<double> positions(const RunCurves& run, const run::MetricCurve& curve, bool of_epochs,
                              const std::string& x) {
  if (x == "seconds") {
    const run::MetricCurve* seconds = find(run.history.by_epoch, "train_seconds");
    return of_epochs && seconds != nullptr ? seconds->values : std::vector<double>{};
  }
  std::vector<double> result;
  if (x == "epoch" && run.course) {
    for (const int64_t step : curve.steps)
      result.push_back(run.course->clock(step) / static_cast<double>(run.course->steps_of_first_epoch()));
    return result;
  }
  const double scale = x == "epoch" ? steps_per_epoch(run.history) : 1;
  if (scale == 0) return result;
  for (const int64_t step : curve.steps) result.push_back(static_cast<double>(step) / scale);
  return result;
}

class PanelMaker {
 public:
  PanelMaker(const std::vector<RunCurves>& runs, const PlotOptions& options) : runs_(runs), options_(options) {}

  /// The metrics that the runs have, each of every run, in one panel.
  plot::Panel make(const std::string& title, const std::vector<std::string>& metrics) const {
    plot::Panel panel{title, options_.x, title, {}};
    for (size_t index = 0; index < runs_.size(); ++index)
      for (const std::string& metric : metrics) add(panel, static_cast<int>(index), metric, metrics.size() > 1);
    return panel;
  }

 private:
  void add(plot::Panel& panel, int index, const std::string& metric, bool several) const {
    const RunCurves& run = runs_[static_cast<size_t>(index)];
    const bool of_epochs = find(run.history.by_step, metric) == nullptr;
    const run::MetricCurve* curve = find(of_epochs ? run.history.by_epoch : run.history.by_step, metric);
    if (curve == nullptr ||
        std::none_of(curve->values.begin(), curve->values.end(), [](double value) { return std::isfinite(value); }))
      return;
    plot::Series series{.name = several || runs_.size() == 1 ? metric : run.name,
                        .x = positions(run, *curve, of_epochs, options_.x),
                        .y = curve->values,
                        .group = runs_.size() == 1 ? static_cast<int>(panel.series.size()) : index,
                        .dashed = several && metric.starts_with("train_")};
    if (series.x.size() != series.y.size()) return;
    if (several && runs_.size() > 1) series.name = run.name + " " + metric;
    if (!of_epochs && (metric.find("loss") != std::string::npos || metric == "gradient_norm")) {
      plot::Series raw = series;
      raw.faint = true;
      panel.series.push_back(std::move(raw));
      series.y = plot::smooth(series.y, options_.smoothing);
    }
    panel.series.push_back(std::move(series));
  }

  const std::vector<RunCurves>& runs_;
  const PlotOptions& options_;
};

bool has(const std::vector<RunCurves>& runs, const std::string& metric) {
  return std::any_of(runs.begin(), runs.end(), [&](const RunCurves& run) {
    for (const auto* curve : {find(run.history.by_epoch, metric), find(run.history.by_step, metric)})
      if (curve != nullptr &&
          std::any_of(curve->values.begin(), curve->values.end(), [](double value) { return std::isfinite(value); }))
        return true;
    return false;
  });
}

std::vector<std::string> known_metrics(const std::vector<RunCurves>& runs) {
  std::vector<std::string> names;
  for (const RunCurves& run : runs)
    for (const auto* curves : {&run.history.by_step, &run.history.by_epoch})
      for (const auto& [name, curve] : *curves)
        if (name != "epoch" && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

plot::Figure make_figure(const std::vector<RunCurves>& runs, const PlotOptions& options) {
  const PanelMaker maker(runs, options);
  plot::Figure figure;
  if (!options.metrics.empty()) {
    for (const std::string& metric : options.metrics) {
      if (!has(runs, metric))
        fail(ErrorKind::usage, "no run has the metric '{}'; they have {}", metric,
             fmt::join(known_metrics(runs), ", "));
      figure.panels.push_back(maker.make(metric, {metric}));
    }
  } else {
    std::vector<std::string> losses = {"train_loss", "validation_loss", "test_loss"};
    if (runs.size() == 1 && options.x != "seconds") losses.insert(losses.begin(), "loss");
    if (!has(runs, "train_loss")) losses = {"loss"};  // before the end of the first epoch
    figure.panels.push_back(maker.make("loss", losses));
    if (has(runs, "train_accuracy"))
      figure.panels.push_back(maker.make("accuracy", {"train_accuracy", "validation_accuracy", "test_accuracy"}));
  }
  for (const plot::Panel& panel : figure.panels)
    if (panel.series.empty())
      fail(ErrorKind::usage, "'{}' cannot be drawn over {} before the first epoch has ended; try --x step", panel.title,
           options.x);
  return figure;
}

int plot_command(const Library& library, PlotOptions options) {
  const std::string extension = std::filesystem::path(options.output).extension().string();
  if (!options.output.empty() && extension != ".svg" && extension != ".png")
    fail(ErrorKind::usage, "'{}' is neither a .svg nor a .png file; name one of these", options.output);
  std::vector<RunCurves> runs;
  for (const std::string& path : options.runs) runs.push_back(read_run(library, path));
  if (options.x.empty()) {
    const bool all_have_epochs =
        std::all_of(runs.begin(), runs.end(), [](const RunCurves& run) { return steps_per_epoch(run.history) > 0; });
    options.x = all_have_epochs ? "epoch" : "step";
  }
  const plot::Figure figure = make_figure(runs, options);
  if (options.output.empty()) {
    const int columns = isatty(STDOUT_FILENO) != 0 ? progress_options_for(stdout).columns : 80;
    for (const plot::Panel& panel : figure.panels) fmt::print("{}\n", plot::draw_text(panel, columns, kTextRows));
    return 0;
  }
  write_atomically(options.output, extension == ".svg" ? plot::draw_svg(figure) : plot::draw_png(figure));
  return 0;
}

}  // namespace

void add_plot(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<PlotOptions>();
  CLI::App* command = app.add_subcommand("plot", "Draw loss and accuracy curves of runs");
  command->add_option("RUN", options->runs, "Run directories; a run may still be training")->required();
  command->add_option("-o,--output", options->output, "FILE.svg or FILE.png; default: text in the terminal");
  command
      ->add_option("--metric", options->metrics, "A metric of metrics.jsonl instead of loss and accuracy; repeatable")
      ->allow_extra_args(false);
  command->add_option("--x", options->x, "step, epoch or seconds; default: epoch, or step where no epoch has ended")
      ->check(CLI::IsMember({"step", "epoch", "seconds"}));
  command
      ->add_option("--smoothing", options->smoothing,
                   "Weight of the past in the curves of the steps' loss and gradient norm, in [0, 1)")
      ->check(CLI::Range(0.0, 0.9999));
  command->callback(
      [options, &action, &library] { action = [options, &library] { return plot_command(library, *options); }; });
}

}  // namespace weft::cli
