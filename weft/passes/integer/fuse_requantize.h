// Lets products of integers write 8 bits while their sums are in registers:
//
//   requantize(integer_conv2d(x, w, zeros), factor, zero, bias?)  ->  quantized_conv2d(x, w, zeros, factor, zero,
//   bias?)
//
// and the same of integer_matmul. The sums must have no other reader, and the factors must be those of the channels.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph fuse_requantize(const Graph& graph);

}  // namespace weft::passes
