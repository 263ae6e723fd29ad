// Which parameters are the weights of hidden layers, read off the forward graph.
#pragma once

#include <vector>

#include "weft/graph/graph.h"

namespace weft::step {

/// For each parameter, whether it is the weight of a convolution or matrix product with others of its kind after it and
/// others of its kind or an embedding before it. False for the first and last layer, embeddings, biases and norms. Call
/// it before gradients are added.
std::vector<bool> find_hidden_weights(const Graph& forward, const std::vector<ValueId>& parameters);

}  // namespace weft::step
