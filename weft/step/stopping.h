// [stop]: ends a run where a metric no longer improves (early stopping; Prechelt, "Early Stopping - But When?", 1998)
// or has reached what was wanted.
#pragma once

#include <string>

#include "weft/library/entries.h"
#include "weft/spec/run_spec.h"
#include "weft/step/metrics.h"

namespace weft::step {

/// The state after an evaluation. It does not change where the metric was not measured, or [stop] asks for nothing.
StoppingState after_evaluation(const StoppingState& state, const spec::StopSpec& stop, const EpochMetrics& metrics,
                               const Entries& entries = standard_entries());

/// Why the run ends after that evaluation, whose state is `state`: "stop.target" or "stop.patience"; empty: it goes on.
std::string reason_to_stop(const StoppingState& state, const spec::StopSpec& stop, const EpochMetrics& metrics,
                           const Entries& entries = standard_entries());

}  // namespace weft::step
