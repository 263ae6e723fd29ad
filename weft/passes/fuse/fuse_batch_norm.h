// Merges batch normalisation with the residual addition and the relu or relu6 that follow it, forward and backward.
//
//   relu(batch_norm(x)), relu(batch_norm(x) + r)         ->  batch_norm{activation="relu"}(x, scale, shift[, r])
//   batch_norm_backward(relu_backward(dy, y), x, ...)    ->  batch_norm_backward{activation="relu"}(dy, x, ...[, y])
//
// (also for batch_norm_inference; a clip to 0 and 6 becomes activation="relu6"). The normalised value must have no
// other user. Backward, everything else that reads the masked gradient (the residual branch) takes it from the fused
// node's fourth result. Without a residual the mask is computed again from x, so that y need not live until then.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph fuse_batch_norm(const Graph& graph);

}  // namespace weft::passes
