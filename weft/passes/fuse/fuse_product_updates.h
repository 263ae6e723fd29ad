// Lets updates multiply their gradient themselves, tile by tile, so that it is never in memory:
//
//   dw = matmul(dy, x, transpose_a), w', v' = sgd_update(w, dw, v, rate)
//   ->  w', v' = product_sgd_update(w, dy, x, v, rate)
//
// Done to fully connected layers of few rows, in which moving the gradient takes longer than computing it, and only
// where nothing else reads the gradient: no norm that clips, no all-reduce, no sum over several batches. After
// late_multiply, which makes such products of gradients that ranks would reduce.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

Graph fuse_product_updates(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
