// A step replaces its states while it runs. What the caller reads after the step, and what becomes the successor of
// another state, must not lie in the memory of a state that is replaced: it gets a copy.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

/// Adds a `reorder` without a change of layout for each output that shows a state before or between its updates, and
/// for each successor that lies in another graph input, right where the value comes to be.
Graph copy_states(const Graph& graph);

}  // namespace weft::passes
