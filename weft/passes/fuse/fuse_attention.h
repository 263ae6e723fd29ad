// Lets inference compute attention without its scores in memory: they take T x S numbers for each head, and nothing but
// the softmax and the product with the values reads them.
//
//   matmul(softmax(mask(scale * matmul(q, k^T))), v)  ->  fused_attention{scale, causal}(q, k, v[, mask])
//
// The scale may stand at q, at k or at the scores; a mask is causal_mask, an addition, or both. Nothing else may read
// what lies between. Graphs that update states are left alone, since gradients read the scores; so are heads of few
// scores, which stay in the caches anyway.
//
// Where the graph is to compute in a narrower type T, two products in T and a softmax between them take half of the
// time (measured on AVX512_BF16): only scores of more than 64 MB, which would crowd out everything else, are worth it.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph fuse_attention(const Graph& graph, DType precision);

}  // namespace weft::passes
