// Which rank of a pipeline computes which node of the update of all weights. What updates a weight runs where that
// weight is, on each rank that holds it; what several weights have in common, such as the norm of all gradients, is
// passed from rank to rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/graph/graph.h"

namespace weft::step {

struct UpdateMessage {
  ValueId value;
  int from = 0, to = 0;
};

struct PlacedUpdate {
  std::vector<std::vector<bool>> runs_on;  // per node and rank
  std::vector<UpdateMessage> messages;     // by value, in the order of the graph
};

/// `holders`: the ranks that have an input of the graph. Its updates are wanted where their states are, its outputs on
/// all ranks.
PlacedUpdate place_update(const Graph& update, int ranks,
                          const std::function<std::vector<int>(const GraphInput& input)>& holders);

}  // namespace weft::step
