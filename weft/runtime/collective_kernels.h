// Kernels of the collectives for a rank of several. Without them a process is alone, and the reference kernels give it
// back what it gave.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/device/kernel.h"
#include "weft/graph/graph.h"

namespace weft {

/// What a collective's node exchanges. Tensors are reduced in the layout that they have, padding included.
comm::CollectiveSpec reduction_of(const NodeSignature& node);

/// Of memory that a collective along an axis takes on this rank for messages between hosts.
using BufferBytes = std::function<int64_t(const std::string& axis, const comm::CollectiveSpec& spec)>;
/// Of all collectives of these graphs; equal ones, which run in turn, count once.
int64_t message_buffer_bytes(const std::vector<const Graph*>& graphs, const BufferBytes& bytes_of);

/// Of the ranks along each axis of a mesh, by its name.
using CollectivesByAxis = std::map<std::string, std::shared_ptr<comm::Collectives>>;

/// Puts them before all others.
void add_collective_kernels(KernelTable& table, const CollectivesByAxis& axes);
/// The same along the axis data alone, with the kernels of messages.
void add_collective_kernels(KernelTable& table, std::shared_ptr<comm::Collectives> collectives);

}  // namespace weft
