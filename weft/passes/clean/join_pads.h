// Joins what was padded with zeros only to be added up, as the gradients of the parts of a split are:
//
//   add(add(pad(a), pad(b)), pad(c))  ->  concat(a, b, c)
//
// where each is padded along one and the same axis and the parts fill it, one beside the other. A sum that something
// else reads too, and parts that overlap or leave a gap, stay as they are. -0 stays -0 where the sum had made it 0.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

/// Leaves the sums and paddings that nothing reads any more to eliminate_dead_code.
Graph join_pads(const Graph& graph);

}  // namespace weft::passes
