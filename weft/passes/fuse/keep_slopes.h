// Lets the forward part put out what the gradient of a gelu multiplies with, in place of what it would compute that
// from:
//
//   y = gelu(x) ... dx = gelu_backward(dy, x)  ->  s = gelu_slope(x), y = gelu(x) ... dx = multiply(dy, s)
//
// Function and slope share nearly all of their arithmetic, and fuse_elementwise computes them in one sweep. Left alone
// where x would be alive backward all the same - something else than the gradient reads it after the gelu, an output or
// a state holds it, it is an input - so that no memory is added.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph keep_slopes(const Graph& graph);

}  // namespace weft::passes
