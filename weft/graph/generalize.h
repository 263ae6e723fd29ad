// From graphs of two sizes to one of any: what differs between a graph for one batch and the same for another says how
// each dimension depends on the batch.
#pragma once

#include <optional>
#include <string>

#include "weft/graph/symbolic_graph.h"

namespace weft {

/// A graph with the size that it was built for.
struct SizedGraph {
  const Graph& graph;
  int64_t size = 0;
};

/// The graph in which the size is a symbol: dimensions and integer attributes that differ become b + a * symbol. Both
/// are graphs before any pass. nullopt where they differ in anything else, such as in a constant or in a node.
std::optional<SymbolicGraph> generalize(const SizedGraph& first, const SizedGraph& second, const std::string& symbol);

}  // namespace weft
