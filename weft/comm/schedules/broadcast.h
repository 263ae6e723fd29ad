// Broadcast algorithms: each makes the schedule of one member of a group of any size. The root's buffer holds the
// elements at first, all buffers in the end. Run backwards (reversed.h) they sum up the members' elements at the root.
// With n members, V elements, k chunks, a latency a and a time b per element:
#pragma once

#include <cstdint>
#include <vector>

#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

/// From each to the next, in chunks that follow each other: (n-2+k)(a + bV/k), which is bV for many chunks.
Schedule make_chain_broadcast(int member, int size, int root, int64_t elements, int64_t chunk);

/// Down a binomial tree: log2(n)(a + bV), the fewest steps for few elements.
Schedule make_tree_broadcast(int member, int size, int root, int64_t elements, int64_t chunk);

/// From the root to all: a + (n-1)bV where n-1 messages at once cost no more than one after the other.
Schedule make_direct_broadcast(int member, int size, int root, int64_t elements);

/// chain, binomial_tree, direct_exchange
const std::vector<Algorithm>& broadcast_algorithms();
/// `chunk`: of the chain and of the tree.
Schedule make_broadcast_schedule(Algorithm algorithm, int member, int size, int root, int64_t elements, int64_t chunk);

/// The same run backwards: in the end the root's buffer holds the sum, the others partial sums.
Schedule make_reduction_schedule(Algorithm algorithm, int member, int size, int root, int64_t elements, int64_t chunk);

}  // namespace weft::comm
