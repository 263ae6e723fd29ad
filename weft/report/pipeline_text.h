// What each rank of a pipeline keeps, sends and waits for, for reports.
#pragma once

#include <optional>
#include <string>

#include "weft/comm/communicator.h"
#include "weft/program/planned_step.h"
#include "weft/report/explained.h"

namespace weft::report {

/// A line about the schedule, and one for each rank; the same on the first rank only, empty elsewhere, and where there
/// is no pipeline. All ranks call it. `measured`: null where no step has run.
std::string pipeline_text(program::PlannedStep& step, comm::Communicator* ranks, const Explained* measured = nullptr);

}  // namespace weft::report
