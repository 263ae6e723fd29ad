// What each rank keeps, sends and waits for in a step, for reports.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "weft/comm/communicator.h"
#include "weft/program/planned_step.h"
#include "weft/report/explained.h"

namespace weft::report {

struct RankReport {
  // Of a pipeline a line about the schedule; then a line for each rank, where ranks share layers or states: else all
  // are like the first.
  std::string text;
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();  // of every rank
};

/// On the first rank; empty elsewhere, and where there is one rank. All ranks call it. `measured`: null where no step
/// has run.
RankReport report_ranks(program::PlannedStep& step, comm::Communicator* ranks, const Explained* measured = nullptr);

}  // namespace weft::report
