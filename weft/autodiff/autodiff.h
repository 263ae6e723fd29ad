// Reverse-mode differentiation of a graph, in place: the gradients become nodes of the same graph.
#pragma once

#include <vector>

#include "weft/graph/gradient_origins.h"
#include "weft/graph/graph.h"

namespace weft {

/// Adds to `graph` the gradient of the scalar f32 value `loss` with respect to each of `targets`, by a reverse walk
/// over the gradient rules of the ops. The result has one value per target, of the target's shape; where the loss does
/// not depend on a target, a constant of zeros. Error(usage) naming the op where a gradient would have to pass through
/// an op that has none. `origins`, where it is given, becomes what it says.
std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, const std::vector<ValueId>& targets,
                                   GradientOrigins* origins = nullptr);

}  // namespace weft
