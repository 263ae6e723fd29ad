// Marks the convolutions of 3x3 in f32 and bf16 that may multiply in Winograd's transformed tiles: a kernel may then
// take 16 multiplications for four results in place of 36, or 36 for sixteen in place of 144. Sums are rounded
// otherwise, and transformed numbers once more where they are bf16 (docs/precision.md has the errors). Whether a kernel
// does is the backend's choice, by shape. The attribute is the workspace that it may take. An eighth of what all
// convolutions of the graph put out is always granted, or of all states, or 16 MB, so that memory grows by little; more
// where fewer activations live than at the fullest moment, so that it grows by no more than that - and, where ranks
// exchange gradients, by no more than the gradients that travel meanwhile.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

/// Asks plan_rest of the context; without it what is always granted is all.
Graph mark_winograd(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
