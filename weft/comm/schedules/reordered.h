// Schedules of gathers and scatters for hosts that do not stand in the order in which their pieces lie.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/comm/schedules/all_gather.h"

namespace weft::comm {

/// make_gather_schedule() and make_reduce_scatter_schedule() of the member that stands at `place`, where host order[p]
/// stands at place p and the hosts' pieces lie as `begins` says. Peers are places. A message of several pieces that do
/// not lie together becomes several messages. With an empty order they are what those make.
Schedule make_gather_schedule(Algorithm algorithm, int place, const std::vector<int64_t>& begins, int64_t chunk,
                              const std::vector<int>& order);
Schedule make_reduce_scatter_schedule(Algorithm algorithm, int place, const std::vector<int64_t>& begins, int64_t chunk,
                                      const std::vector<int>& order);

}  // namespace weft::comm
