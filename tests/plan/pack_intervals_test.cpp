#include "weft/plan/memory/pack_intervals.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/base/rng.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

int64_t lower_bound(const std::vector<Interval>& intervals) {
  int steps = 0;
  for (const Interval& interval : intervals) steps = std::max(steps, interval.last + 1);
  const auto live = live_bytes(intervals, steps);
  return *std::max_element(live.begin(), live.end());
}

/// The first pair that lives at one step and overlaps in memory, or "".
std::string find_clash(const std::vector<Interval>& intervals) {
  for (size_t a = 0; a < intervals.size(); ++a)
    for (size_t b = a + 1; b < intervals.size(); ++b) {
      const Interval &x = intervals[a], &y = intervals[b];
      const bool together = x.first <= y.last && y.first <= x.last;
      const bool overlap = x.offset < y.offset + align_up(y.bytes) && y.offset < x.offset + align_up(x.bytes);
      if (together && overlap && x.bytes > 0 && y.bytes > 0) return std::to_string(a) + " and " + std::to_string(b);
    }
  return "";
}

TEST(PackIntervals, DisjointLivesShareMemory) {
  std::vector<Interval> intervals = {{0, 1, 640, 0}, {2, 3, 640, 0}};
  EXPECT_EQ(pack_intervals(intervals), 640);
}

TEST(PackIntervals, LivesThatTouchAtOneStepDoNot) {
  std::vector<Interval> intervals = {{0, 1, 640, 0}, {1, 2, 640, 0}};
  EXPECT_EQ(pack_intervals(intervals), 1280);
}

TEST(PackIntervals, ForwardBackwardNestIsPackedExactly) {
  // Activations of a chain: layer i lives from its forward step to its backward step.
  std::vector<Interval> intervals;
  const int layers = 50;
  for (int layer = 0; layer < layers; ++layer)
    intervals.push_back({layer, 2 * layers - layer, 64 * (1 + layer % 7), 0});
  const int64_t bound = lower_bound(intervals);
  EXPECT_EQ(pack_intervals(intervals), bound);
}

TEST(PackIntervals, WhatGreedyOrdersMissIsFoundByImprovingThem) {
  // Buffers of a network with skips: each lives for a few steps, sizes fall and rise.
  for (uint64_t seed = 0; seed < 10; ++seed) {
    RandomStream random(seed);
    std::vector<Interval> intervals;
    for (int step = 0; step < 120; ++step)
      intervals.push_back({step, step + 1 + static_cast<int>(random.below(6)), 64 * (1 + random.below(40)), 0});
    const int64_t bound = lower_bound(intervals);
    EXPECT_LE(static_cast<double>(pack_intervals(intervals)), 1.08 * static_cast<double>(bound)) << "seed " << seed;
    EXPECT_EQ(find_clash(intervals), "") << "seed " << seed;
  }
}

TEST(PackIntervals, NothingNeedsNothing) {
  std::vector<Interval> intervals;
  EXPECT_EQ(pack_intervals(intervals), 0);
}

TEST(PackIntervals, RandomLivesNeverClashAndStayNearTheBound) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed);
    std::vector<Interval> intervals;
    for (int index = 0; index < 200; ++index) {
      const int first = static_cast<int>(random.below(100));
      intervals.push_back({first, first + static_cast<int>(random.below(30)), random.below(100000), 0});
    }
    const int64_t bound = lower_bound(intervals);
    const int64_t arena = pack_intervals(intervals);
    EXPECT_EQ(find_clash(intervals), "") << "seed " << seed;
    EXPECT_GE(arena, bound);
    EXPECT_LE(static_cast<double>(arena), 1.25 * static_cast<double>(bound)) << "seed " << seed;
    for (const Interval& interval : intervals) {
      EXPECT_EQ(interval.offset % kAlignment, 0);
      EXPECT_LE(interval.offset + align_up(interval.bytes), arena);
    }
  }
}

}  // namespace
}  // namespace weft
