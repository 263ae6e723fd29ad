// Lowers the rate when a measure no longer improves; as torch.optim.lr_scheduler.ReduceLROnPlateau with a relative
// threshold.
#pragma once

#include "weft/spec/run_spec.h"
#include "weft/step/metrics.h"

namespace weft::step {

/// The state after an epoch; the same where the epoch was not measured or the schedule is another one. The rate of the
/// next epoch is that of the schedule times `factor`.
PlateauState after_epoch(const PlateauState& state, const spec::ScheduleSpec& schedule, const EpochMetrics& metrics);

}  // namespace weft::step
