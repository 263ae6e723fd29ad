// What a step may leave to the next run of its plan: collectives that nothing of this run waits for but updates, the
// waits for them and the updates. Each runs there before the first node that needs what it writes, so that the forward
// part computes while the rest of the gradients travels, with the same result (as in Peng et al. 2019, "ByteScheduler",
// section 3). Whoever reads the states in between has to finish the step first.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/plan/plan.h"
#include "weft/plan/storage.h"

namespace weft {

struct DeferredOrder {
  std::vector<NodeId> order;  // the deferred ones last
  std::vector<int> before;    // per node of the order, as PlannedNode::before; -1: not deferred
};

/// Defers the waits that are marked so (kDeferred) and all that must come after them. Nothing is deferred where that
/// would hold a graph output, another collective or a transfer to a file.
DeferredOrder defer(const Graph& graph, const StorageMap& storage, const std::vector<NodeId>& order);

/// Indices into plan.steps as a run executes them: what the run before has deferred where it is due.
std::vector<size_t> order_of_run(const Plan& plan);

}  // namespace weft
