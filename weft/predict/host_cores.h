// The cores of a host, and the ranks that compute and load on them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::predict {

struct HostCores {
  int64_t cores = 0;    // of the host; 0: not known
  int64_t threads = 1;  // of each rank's steps; 0: devices compute
  int64_t ranks = 1;    // on the host

  /// Ranks that compute at the same time.
  int64_t at_once() const {
    if (cores <= 0 || threads <= 0) return ranks;
    return std::min(ranks, std::max<int64_t>(1, cores / threads));
  }

  /// How many times as long a rank computes as alone with so many threads, since ranks beyond the cores take turns.
  double turns() const {
    if (cores <= 0 || threads <= 0) return 1;
    return std::max(1.0, static_cast<double>(ranks * threads) / static_cast<double>(std::max(cores, threads)));
  }
};

}  // namespace weft::predict
