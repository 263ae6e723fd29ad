// The curves of runs as a figure, for `weft plot` and the page of `weft explain`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/plot/figure.h"
#include "weft/run/metrics_history.h"
#include "weft/spec/course.h"

namespace weft::report {

struct RunCurves {
  std::string name;
  run::MetricsHistory history;
  std::optional<spec::Course> course = {};  // where epochs differ in their steps

  bool empty() const { return history.by_step.empty() && history.by_epoch.empty(); }
};

/// The last part of the path, with \xHH for bytes that are no UTF-8.
std::string name_of_run(const std::string& path);

/// Of run directories, which may still be written to. Runs whose last parts are alike have their whole paths as names.
std::vector<RunCurves> read_curves(const Library& library, const std::vector<std::string>& paths);

struct CurveOptions {
  std::vector<std::string> metrics = {};  // a panel each; empty: loss, and accuracy where there is one
  std::string x = {};      // "step", "epoch" or "seconds"; empty: epoch, or step before the first has ended
  double smoothing = 0.9;  // weight of the past in the loss and the gradient norm of steps
};

/// Runs keep their colours in all panels; of one run its metrics do. Error(usage) for a metric that no run has, and
/// where `x` is not known yet.
plot::Figure draw_curves(const Library& library, const std::vector<RunCurves>& runs, CurveOptions options);

}  // namespace weft::report
