// weft plot: loss and accuracy curves of runs, in the terminal or as SVG or PNG.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/progress.h"
#include "weft/cli/command.h"
#include "weft/cli/real_number.h"
#include "weft/plot/figure.h"
#include "weft/report/range_figure.h"
#include "weft/report/run_curves.h"

namespace weft::cli {

namespace {

constexpr int kTextRows = 14;

struct PlotOptions {
  std::vector<std::string> runs;
  std::string output;
  report::CurveOptions curves;
  bool range_test = false;
};

plot::Figure draw(const Library& library, const PlotOptions& options) {
  if (options.range_test) return report::draw_range_tests(options.runs);
  const std::vector<report::RunCurves> runs = report::read_curves(library, options.runs);
  for (size_t index = 0; index < runs.size(); ++index)
    if (runs[index].empty())
      fail(ErrorKind::usage, "'{}' has no metrics yet; let it train for some more steps", options.runs[index]);
  return report::draw_curves(library, runs, options.curves);
}

int plot_command(const Library& library, const PlotOptions& options) {
  const std::string extension = std::filesystem::path(options.output).extension().string();
  if (!options.output.empty() && extension != ".svg" && extension != ".png")
    fail(ErrorKind::usage, "'{}' is neither a .svg nor a .png file; name one of these", options.output);
  const plot::Figure figure = draw(library, options);
  if (options.output.empty()) {
    const int columns = isatty(STDOUT_FILENO) != 0 ? progress_options_for(stdout).columns : 80;
    if (!figure.title.empty()) fmt::print("{}\n\n", figure.title);
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
  command->add_option("RUN", options->runs, "Run directories; a run may still be training")
      ->type_name("RUN")
      ->required();
  command->add_option("-o,--output", options->output, "FILE.svg or FILE.png; default: text in the terminal")
      ->type_name("FILE");
  command
      ->add_option("--metric", options->curves.metrics,
                   "A metric of metrics.jsonl instead of loss and accuracy; repeatable")
      ->allow_extra_args(false);
  command
      ->add_option("--x", options->curves.x, "step, epoch or seconds; default: epoch, or step where no epoch has ended")
      ->check(CLI::IsMember({"step", "epoch", "seconds"}));
  command
      ->add_option("--smoothing", options->curves.smoothing,
                   "Weight of the past in the curves of the steps' loss and gradient norm, in [0, 1)")
      ->check(real_number_in(0, 0.9999));
  command->add_flag("--range-test", options->range_test,
                    "The range test by which a run chose its learning rate (optimizer.learning_rate = auto)");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return plot_command(library, *options); }; });
}

}  // namespace weft::cli
