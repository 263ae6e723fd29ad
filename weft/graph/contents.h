// Which values show the same numbers: a view is its source under another shape.
#pragma once

#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// For each value the one that it is a view of, through several where there are, or itself.
std::vector<ValueId> find_contents(const Graph& graph);

}  // namespace weft
