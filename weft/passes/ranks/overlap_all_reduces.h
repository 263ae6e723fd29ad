// Splits all-reduces in a start, where their operand is there, and a wait, before what reads their result, and lets the
// step compute in between. Those of one kind go together where that is cheaper: each collective costs its latency, and
// one of several tensors begins only when the last of them is there (merged-gradient wait-free backpropagation: Shi et
// al. 2019, "MG-WFBP"). Neighbours in time are merged as long as the last gradient is predicted to arrive no later for
// it, and until latency is small beside their bytes, so that updates can begin while others travel. A wait stands where
// its tensors are predicted to have arrived. Where they cannot all have arrived when the backward part is over, and the
// caller agrees, waits for gradients are left to the next run (plan/deferral.h), and what that reads first goes first.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

/// From the start of an all-reduce of so many bytes to its end.
double predicted_seconds(const Ranks& ranks, int64_t bytes);

Graph overlap_all_reduces(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
