#include "weft/step/stopping.h"

#include <cmath>
#include <cstdlib>

#include "weft/step/monitor.h"

namespace weft::step {

StoppingState after_evaluation(const StoppingState& state, const spec::StopSpec& stop, const EpochMetrics& metrics,
                               const Entries& entries) {
  if (stop.patience == 0 && stop.target.empty()) return state;
  const std::optional<double> value = monitored(stop.monitor, metrics);
  if (!value) return state;
  const double sign = higher_is_better(stop.monitor, entries) ? 1 : -1;
  // NaN is no improvement, not even over nothing: later values must be able to be one.
  const bool improved = std::isfinite(*value) && (!state.best || sign * (*value - *state.best) > stop.least_change);
  StoppingState next = state;
  if (improved) next.best = value;
  next.evaluations_since = improved ? 0 : state.evaluations_since + 1;
  return next;
}

std::string reason_to_stop(const StoppingState& state, const spec::StopSpec& stop, const EpochMetrics& metrics,
                           const Entries& entries) {
  if (const std::optional<double> value = monitored(stop.monitor, metrics); !stop.target.empty() && value) {
    const double sign = higher_is_better(stop.monitor, entries) ? 1 : -1;
    if (sign * (*value - std::strtod(stop.target.c_str(), nullptr)) >= 0) return "stop.target";
  }
  return stop.patience > 0 && state.evaluations_since >= stop.patience ? "stop.patience" : "";
}

}  // namespace weft::step
