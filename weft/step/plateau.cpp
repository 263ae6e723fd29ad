#include "weft/step/plateau.h"

#include <algorithm>
#include <cmath>

#include "weft/step/monitor.h"

namespace weft::step {

PlateauState after_epoch(const PlateauState& state, const spec::ScheduleSpec& schedule, const EpochMetrics& metrics,
                         const Entries& entries) {
  const std::optional<double> value = monitored(schedule.monitor, metrics);
  if (schedule.name != "plateau" || !value) return state;
  PlateauState next = state;
  const bool is_higher_better = higher_is_better(schedule.monitor, entries);
  const double bound = state.best.value_or(0) * (is_higher_better ? 1 + schedule.threshold : 1 - schedule.threshold);
  // NaN is no improvement, not even over nothing: later values must be able to be one.
  const bool improved = std::isfinite(*value) && (!state.best || (is_higher_better ? *value > bound : *value < bound));
  if (improved) next.best = value;
  next.bad_epochs = improved ? 0 : state.bad_epochs + 1;
  if (state.cooldown > 0) {
    --next.cooldown;
    next.bad_epochs = 0;
  }
  if (next.bad_epochs > schedule.patience) {
    next.factor = std::max(state.factor * schedule.factor, schedule.end_factor);
    next.cooldown = schedule.cooldown;
    next.bad_epochs = 0;
  }
  return next;
}

}  // namespace weft::step
