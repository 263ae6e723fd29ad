// All-gather algorithms: each makes the schedule of one member of a group of any size. The buffer holds a piece per
// member, one behind the other, of which a member has its own at first and all in the end. With n members, V elements
// of each, a latency a and a time b per element:
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

/// `begins` of all three: where each member's piece begins, and the end of the last.

/// Each passes on to its neighbour what it got last: (n-1)(a + bV), over links between neighbours alone. `chunk`:
/// pieces travel in parts of so many elements; 0: whole.
Schedule make_ring_gather(int member, const std::vector<int64_t>& begins, int64_t chunk = 0);

/// Bruck et al. 1997: what a member has doubles with each exchange: log2(n) a + (n-1) bV.
Schedule make_doubling_gather(int member, const std::vector<int64_t>& begins);

/// All send theirs to all: a + (n-1) bV where n-1 messages at once cost no more than one after the other.
Schedule make_direct_gather(int member, const std::vector<int64_t>& begins);

/// Those that gather: ring, recursive_doubling, direct_exchange.
const std::vector<Algorithm>& all_gather_algorithms();
/// `chunk` is for the ring alone.
Schedule make_gather_schedule(Algorithm algorithm, int member, const std::vector<int64_t>& begins, int64_t chunk = 0);

}  // namespace weft::comm
