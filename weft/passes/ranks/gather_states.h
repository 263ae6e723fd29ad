// From a graph that reads whole states to that of a rank which keeps parts of them, or not all of them: each state is
// put together where the first node reads it, and is gone after the last one. So no rank ever has the whole model. What
// one stage of a pipeline has, it sends to the others; parts are then gathered along the axes that split the state. All
// ranks must run the graph as often, since all of them take part in each exchange.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/graph/sharding.h"

namespace weft::passes {

struct GatheredState {
  Sharding sharding;             // of the graph's shape
  bool is_held = true;           // by this rank: its part
  int64_t from = 0;              // where it is not: the rank that sends its part
  std::vector<int64_t> to = {};  // where it is: the ranks to which this one sends it
};

/// Inputs that are not named stay as they are. Those that this rank does not hold are no inputs of the result. Tags of
/// messages count from `first_tag` on, the same on all ranks. The graph must update no state. Error(internal) where a
/// sharding is not of the input's shape.
Graph gather_states(const Graph& graph, const std::map<std::string, GatheredState>& states, int64_t first_tag);

}  // namespace weft::passes
