// What a collective will cost, by formula: for groups so large that simulating each message (cost.h) would take longer
// than the collective. The formulas are those of schedules/*.h with the parts that they leave out: the least time of a
// message, sums, and chunks that follow each other. Where links differ each counts as the slowest, but for the
// hierarchical algorithm, which uses those within groups and those between them.
#pragma once

#include <cstdint>

#include "weft/comm/links/links.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

struct Estimate {
  double seconds = 0;       // until the last member has its result
  double link_seconds = 0;  // for which the busiest member's link is busy in a direction
};

/// What is estimated. Without chunks `chunk` is 0.
struct EstimatedCollective {
  Algorithm algorithm = Algorithm::ring;
  int size = 1;          // members
  int64_t elements = 0;  // of the whole buffer
  int64_t chunk = 0;     // elements
  int64_t element_bytes = 4;
  double summed_elements_per_second = 2e9;
};

/// Not of what the communicator does itself (Algorithm::native).
Estimate estimate_all_reduce(const EstimatedCollective& what, const Links& links);
/// Of those that gather: ring, recursive_doubling, direct_exchange; pieces count as equal.
Estimate estimate_gather(const EstimatedCollective& what, const Links& links);
Estimate estimate_reduce_scatter(const EstimatedCollective& what, const Links& links);
/// Of broadcast_algorithms().
Estimate estimate_broadcast(const EstimatedCollective& what, const Links& links);
Estimate estimate_reduction(const EstimatedCollective& what, const Links& links);

}  // namespace weft::comm
