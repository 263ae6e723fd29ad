// Applies a relu after the max pooling that reads it instead of before, to a quarter of the numbers for windows of 2x2:
//
//   max_pool2d(relu(x))                                        ->  relu(max_pool2d(x))
//   relu_backward(max_pool2d_backward(dy, relu(x), y), relu(x)) ->  max_pool2d_backward(relu_backward(dy, y), x, ...)
//
// Both keep the order of numbers, so every result is the same to the bit: a window whose maximum is positive has it in
// the same place, and the gradient of any other is 0 before and after. Left alone where something else reads the relu,
// where pooling does not make the image smaller, and where batch norm takes the relu into its own sweep.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph pool_before_relu(const Graph& graph);

}  // namespace weft::passes
