// What each load of a plan asks the disk for ahead, so that the disk reads while the nodes between the loads compute.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/plan/plan.h"

namespace weft {

/// The value in the file that a step of the plan stores or loads.
ValueId stored_value(const Graph& graph, const PlannedNode& step);

/// Per step of the plan, for those that load: the later steps whose values are asked for once it is done.
std::vector<std::vector<size_t>> find_read_ahead(const Graph& graph, const Plan& plan);

}  // namespace weft
