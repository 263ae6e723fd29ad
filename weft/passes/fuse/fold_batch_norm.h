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

#include <map>

#include "weft/base/hash128.h"
#include "weft/graph/constant.h"
#include "weft/graph/graph.h"

namespace weft::passes {

/// Weights that were folded, by a hash of what they were folded from: graphs of one model, for several batches, share
/// theirs.
using FoldedWeights = std::map<Hash128, Constant>;

/// `known`, where it is given, is looked at and added to.
Graph fold_batch_norm(const Graph& graph, FoldedWeights* known = nullptr);

}  // namespace weft::passes
