// Folds batch normalisation by constant statistics into the convolution before it, whose weights are constants too: an
// inference graph then has neither the node nor its sweep over memory.
//
//   batch_norm_inference(conv2d(x, w, b), scale, shift, mean, variance)  ->  conv2d(x, w', b')
//     factor = scale / sqrt(variance + epsilon)      w' = w * factor of its output channel
//                                                    b' = shift + (b - mean) * factor
//
// The convolution must have no other reader. Weights are multiplied in double and rounded once, so the result differs
// from that of the two nodes by rounding. Weights other than f32 stay as they are: narrower types come later in the
// table.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph fold_batch_norm(const Graph& graph);

}  // namespace weft::passes
