// Reduce-scatter algorithms: each is the all-gather of the same name run backwards (reversed.h), or as its mirror
// image, with its latency and its traffic. The buffer holds a member's own numbers for the pieces of all, and in the
// end its own piece summed over all members; the rest of it holds partial sums. With n members, V elements in all:
//   ring, in chunks   (n-1)(a + bV/n)
//   doubling          ceil(log2(n)) a + (n-1)/n bV: recursive halving, for any n
//   direct            a + (n-1)/n bV where n-1 messages at once cost no more than one after the other
#pragma once

#include <cstdint>
#include <vector>

#include "weft/comm/schedules/all_gather.h"

namespace weft::comm {

/// `begins`: where each member's piece begins, and the end of the last. The algorithms are all_gather_algorithms().
Schedule make_reduce_scatter_schedule(Algorithm algorithm, int member, const std::vector<int64_t>& begins,
                                      int64_t chunk);

}  // namespace weft::comm
