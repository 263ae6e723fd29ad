// Lowers the learning rate when a measure stops improving, like torch.optim.lr_scheduler.ReduceLROnPlateau with a
// relative threshold.
#pragma once

#include "weft/library/entries.h"
#include "weft/spec/run_spec.h"
#include "weft/step/metrics.h"

namespace weft::step {

/// The state after an epoch. It does not change where the epoch was not measured or another schedule is used. The next
/// epoch's rate is that of the schedule times `factor`.
PlateauState after_epoch(const PlateauState& state, const spec::ScheduleSpec& schedule, const EpochMetrics& metrics,
                         const Entries& entries = standard_entries());

}  // namespace weft::step
