// Which algorithm a collective takes: the cheapest, by simulation (cost.h), or beyond 64 members by formula
// (estimate.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/comm/links/cost.h"

namespace weft::comm {

struct Choice {
  Algorithm algorithm = Algorithm::direct_exchange;
  int64_t chunk = 0;  // elements; 0 where the algorithm has none
  double seconds = 0;
  std::vector<int> order = {};  // host by place in the schedule; empty: their own
};

/// All choose the order of the hosts too, where links differ: the cheapest one of orders_of() (orders.h), and the
/// hosts' own unless another is cheaper by more than a little.

/// The cheapest for `size` members, among those that are predicted to cost hardly more that with the fewest waits, in
/// which hosts could keep each other; `only` that algorithm where it is given. Of `count` all-reduces one after the
/// other, each of so many elements, whose messages may overlap: the seconds are those of all. `queue_seconds`: for
/// which a message waits behind what hosts have handed over for other tensors. Where there is such, the link's time is
/// what is scarce: among the algorithms that take hardly more of it than the least, that with the fewest waits; the
/// seconds are those without other tensors. Without `may_reorder` hosts keep their order.
Choice choose_algorithm(int size, int64_t elements, int64_t element_bytes, const Links& links,
                        double summed_bytes_per_second, std::optional<Algorithm> only = std::nullopt, int64_t count = 1,
                        double queue_seconds = 0, bool may_reorder = true);

/// Of an all-gather; `begins` as in schedules/all_gather.h. An algorithm that does not gather counts as none.
Choice choose_gather(const std::vector<int64_t>& begins, int64_t element_bytes, const Links& links,
                     std::optional<Algorithm> only = std::nullopt);

/// The cheapest for hosts of which each gets the sum of its piece; `only` that algorithm where it is given and can do
/// it. `begins` as in schedules/reduce_scatter.h.
Choice choose_reduce_scatter(const std::vector<int64_t>& begins, int64_t element_bytes, const Links& links,
                             double summed_bytes_per_second, std::optional<Algorithm> only = std::nullopt);

/// From the root to all, `count` times one after the other, each time so many elements. The seconds are those of all.
Choice choose_broadcast(int size, int root, int64_t elements, int64_t element_bytes, const Links& links,
                        std::optional<Algorithm> only = std::nullopt, int64_t count = 1);

/// From all to the root, summed.
Choice choose_reduction(int size, int root, int64_t elements, int64_t element_bytes, const Links& links,
                        double summed_bytes_per_second, std::optional<Algorithm> only = std::nullopt,
                        int64_t count = 1);

}  // namespace weft::comm
