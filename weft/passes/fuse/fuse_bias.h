// Lets convolutions add their bias to the sums while these are in registers, and gives the bias its gradient from the
// sweep over the output's gradient that the weights' gradient makes anyway:
//
//   add(conv2d(x, w), reshape(b))                                ->  conv2d(x, w, b)
//   conv2d_backward_weights(x, dy), reduce_sum(dy) of its channels ->  conv2d_backward_weights{bias_gradient=true}(x,
//   dy)
//
// The convolution must have no other reader.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph fuse_bias(const Graph& graph);

}  // namespace weft::passes
