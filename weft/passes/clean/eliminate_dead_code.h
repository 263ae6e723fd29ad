// Removes nodes on which neither a graph output nor the successor of a state depends. Inputs stay, used or not: they
// are the graph's interface.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph eliminate_dead_code(const Graph& graph);

}  // namespace weft::passes
