// Checks that a graph keeps the rules that every pass relies on.
#pragma once

#include "weft/graph/graph.h"

namespace weft {

/// Order (every operand is defined before its use), types (inferred again and compared), unique names, updates that
/// fit their state, layouts that fit their rank. Throws Error(internal) naming `stage` and the node.
void verify(const Graph& graph, const std::string& stage);

}  // namespace weft
