// Computes each expression once: a node with the same op, operands, attributes and layouts as an earlier one is
// replaced by it. Updates of state are never merged.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph eliminate_common_subexpressions(const Graph& graph);

}  // namespace weft::passes
