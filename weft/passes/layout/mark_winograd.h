// Grants workspace to the nodes for which the device has kernels that are faster with it: on the CPU convolutions of
// 3x3 in f32 and bf16, which may then multiply in Winograd's transformed tiles, with 16 multiplications for four
// results in place of 36, or 36 for sixteen in place of 144. Sums are rounded otherwise, and transformed numbers once
// more where they are bf16 (docs/precision.md has the errors). Which nodes ask for it, and whether a kernel takes it,
// is the backend's choice. An eighth of what all convolutions of the graph put out is always granted, or of all states,
// or 16 MB, so that memory grows by little; more where fewer activations live than at the fullest moment, so that it
// grows by no more than that - and, where ranks exchange gradients, by no more than the gradients that travel
// meanwhile.
#pragma once

#include <optional>

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

/// Reads the forecast of the context, of the graph below; without one what is always granted is all.
Graph mark_winograd(const Graph& graph, const PassContext& context);

/// For the forecast: all may take as much as they want. nullopt where no node would.
std::optional<Graph> mark_winograd_everywhere(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
