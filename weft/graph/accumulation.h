// Sums that a step adds to over several of its runs. `accumulate_update` adds what a run has to a state; its last
// operand, a scalar input of the graph, says whether the sum is then complete. In a run in which it is not, whatever
// depends on the sum does not run: its exchange over the ranks, the updates that follow.
#pragma once

#include <vector>

#include "weft/graph/graph.h"

namespace weft {

inline constexpr const char* kAccumulate = "accumulate_update";

inline bool is_accumulation(const Node& node) { return node.op->name == kAccumulate; }

/// For each node: does it depend on such a sum, and so run only where that is complete?
std::vector<bool> find_completing(const Graph& graph);

/// Index into graph.inputs() of the scalar by which runs complete the sums; -1 where there are none. Error(usage) where
/// they do not all name the same.
int completing_input(const Graph& graph);

}  // namespace weft
