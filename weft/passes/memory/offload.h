// Where recomputation alone cannot bring the arena of a step under the limit of the context, lets activations lie in a
// file over their longest pause: a `store` right after the node that makes one, a `load` before its first reader
// thereafter. What goes there and what is computed again is chosen together, at the least predicted time: a value costs
// its bytes, there and back, over the rate of the context.
//
// The bits are those of a step without a limit. Where no choice meets the limit, the one with the smallest arena is
// taken. Nothing where the context gives no rate.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

Graph offload(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
