// Splits all-gathers, reduce-scatters, broadcasts and sums at a root in a start, as soon as the operand is there, and a
// wait, before what reads the parts; what depends on them and leads to updates alone is computed behind the rest of the
// backward part, so that nothing waits early. A tensor that is scattered is waited for where its part is predicted to
// have arrived, so that its memory is free again. Of states that ranks keep in parts each is gathered where it is read,
// while the one before it is used. What updates gather is put in place while the next is under way. Messages of a
// pipeline keep their order.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

/// From the start of an all-gather to its end; `bytes`: of all parts together.
double predicted_gather_seconds(const Ranks& ranks, int64_t bytes);

Graph overlap_collectives(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
