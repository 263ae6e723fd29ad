// Keeps the copies of parameters in a narrower type from one step to the next, so that a weight is cast once for each
// of its updates, right after it, while its numbers are still in a near cache.
#pragma once

#include "weft/passes/support/pass_context.h"

namespace weft::passes {

/// Marks casts of parameters and states in a graph that updates some as kept (graph/kept.h), with a renewal for each
/// whose state the graph replaces. A kept copy takes its memory during the whole step, and its update waits until
/// nothing reads it any more: the largest are made in each step, as before, where the arena would grow by more than a
/// hundredth otherwise. A graph that updates states but no parameter keeps all: it generates, one token in each run. A
/// graph without updates, in which copies die young, is left alone, as is one with a memory limit.
Graph keep_copies(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
