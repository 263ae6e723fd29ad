// The order of execution: that of the graph, with each state update as early as its operands and the other readers
// of the state allow, so that gradients die young; where that lowers the peak, also with everything that leaves the
// arena emptier as early as it can run, such as the gradient of a weight before that of the data.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/plan/storage.h"

namespace weft {

/// For each node those that must wait for it: readers of its results, and nodes that overwrite what it reads. What
/// shares memory was chosen so that the graph's order keeps to this: readers of the old content come before, of the new
/// after.
std::vector<std::vector<int32_t>> find_successors(const Graph& graph, const StorageMap& storage);

/// All nodes, each after what it reads, and each update after everything else that reads the state it overwrites.
/// Error(internal) where no such order exists.
std::vector<NodeId> schedule(const Graph& graph, const StorageMap& storage);

}  // namespace weft
