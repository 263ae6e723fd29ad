// Reverse-mode differentiation of a graph, in place: the gradients become nodes of the same graph.
#pragma once

#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// Where the nodes come from that add_gradients() has added.
struct GradientOrigins {
  size_t forward_nodes = 0;      // that were there before
  std::vector<NodeId> made_for;  // per node behind those: of which one's rule it is; of a sum of gradients the node
                                 // that gives the value, or, of an input's, the one whose rule gave the last term.
                                 // Invalid where it is of none
  std::vector<bool> is_sum;      // per node behind those: a sum of gradients of a value that is read several times
};

/// Adds to `graph` the gradient of the scalar f32 value `loss` with respect to each of `targets`, by a reverse walk
/// over the gradient rules of the ops. The result has one value per target, of the target's shape; where the loss does
/// not depend on a target, a constant of zeros. Error(usage) naming the op where a gradient would have to pass through
/// an op that has none. `origins`, where it is given, becomes what it says.
std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, const std::vector<ValueId>& targets,
                                   GradientOrigins* origins = nullptr);

}  // namespace weft
