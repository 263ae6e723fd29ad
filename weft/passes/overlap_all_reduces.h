// Splits all-reduces in a start, where their operand is there, and a wait, before what reads their result, and lets the
// step compute in between. Those of one kind go together where that is cheaper: each collective costs its latency, and
// a large one begins only when its last tensor is there. The buckets are those after which the last gradient arrives
// first (merged-gradient wait-free backpropagation: Shi et al. 2019, "MG-WFBP", sections IV and V), as predicted; none
// is larger than it needs to be for its latency to be small beside it, so that updates can begin while others travel.
// A wait stands where its tensors are predicted to have arrived.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/pipeline.h"

namespace weft::passes {

Graph overlap_all_reduces(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
