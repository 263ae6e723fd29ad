// Which values lie in the host's memory where the device has its own: batches and scalars, which the caller fills, what
// a node has copied there, and what collectives and transfers read and make. All other values, states among them, lie
// in the device's.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/plan/storage.h"

namespace weft {

/// Per storage: whether it lies in the host's memory. Error(usage), with the node and the value, where a kernel would
/// read a value from the other memory, or the caller an output: passes/layout/copy_between_spaces.h adds the copies.
std::vector<bool> find_host_storages(const Graph& graph, const StorageMap& storage);

}  // namespace weft
