// Which parameters are the weights of hidden layers, read off the forward graph.
#pragma once

#include <vector>

#include "weft/graph/graph.h"

namespace weft::step {

/// For each parameter: is it the weight of a convolution or a matrix product that lies between others of its kind or
/// an embedding on the one side and others of its kind on the other? Not the first layer, not the last, no embedding,
/// bias or norm. To be called before gradients are added.
std::vector<bool> find_hidden_weights(const Graph& forward, const std::vector<ValueId>& parameters);

}  // namespace weft::step
