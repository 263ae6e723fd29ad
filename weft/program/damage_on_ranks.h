// Which samples the ranks of a run have found damaged, each counted once.
#pragma once

#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/program/run_data.h"

namespace weft::program {

/// A message for each damaged sample that any rank has found so far in any part of the data: one that several ranks
/// have met comes once, as the first of them says it. In the order of the data, the same on all ranks, which all call
/// this; a null communicator is a process that is alone.
std::vector<std::string> damaged_on_all_ranks(const RunData& data, comm::Communicator* ranks);

}  // namespace weft::program
