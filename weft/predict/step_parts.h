// Which part of a step each node belongs to, for what is predicted and what is measured alike.
#pragma once

#include <string_view>
#include <vector>

#include "weft/graph/graph.h"

namespace weft::predict {

enum class Part {
  forward,   // all that the loss and the right answers depend on, as far as this rank computes them
  backward,  // the rest, until updates begin
  update,    // of states, and what depends on them
  exchange,  // starts of collectives and messages, and waits for them
  transfer,  // to the file of what finds no place in memory, and back
};
inline constexpr int kParts = 5;
/// "forward"
std::string_view name_of(Part part);

/// Per node of a compiled step. `is_update`: of a graph that only updates.
std::vector<Part> parts_of(const Graph& graph, bool is_update = false);

}  // namespace weft::predict
