// Dynamic storage allocation, offline: places intervals of known life and size in one arena, as low as it can.
// The problem is NP-hard; greedy orders come within a few percent on training graphs (Sekiyama et al. 2018,
// "Profile-guided memory optimization for deep neural networks"); where they do not, the order is improved by hill
// climbing. The gap to the lower bound is reported.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

struct Interval {
  int first = 0, last = 0;  // steps during which it lives, both included
  int64_t bytes = 0;
  int64_t offset = 0;                    // the result, a multiple of kAlignment
  int again_first = 0, again_last = -1;  // steps during which it lives besides, both included

  bool lives_at(int step) const {
    return (first <= step && step <= last) || (again_first <= step && step <= again_last);
  }
};

/// Sets the offsets such that intervals that live at the same step never overlap. Returns the arena's size in bytes.
int64_t pack_intervals(std::vector<Interval>& intervals);

/// Bytes alive at each of `steps` steps, sizes rounded up to kAlignment. Its maximum bounds every arena from below.
std::vector<int64_t> live_bytes(const std::vector<Interval>& intervals, int steps);

}  // namespace weft
