#include "weft/plan/memory/pack_intervals.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "weft/base/rng.h"
#include "weft/tensor/tensor.h"

namespace weft {

namespace {

/// An interval at its place. Those placed lie side by side in memory: the search below reads all of them each time.
struct Block {
  int64_t offset, end;
  int first, last, again_first, again_last;
};

bool meet(int first, int last, int other_first, int other_last) { return first <= other_last && other_first <= last; }

bool live_together(const Block& a, const Block& b) {
  if (meet(a.first, a.last, b.first, b.last)) return true;
  if (a.again_last < 0 && b.again_last < 0) return false;  // as nearly always
  return meet(a.again_first, a.again_last, b.first, b.last) || meet(a.first, a.last, b.again_first, b.again_last) ||
         meet(a.again_first, a.again_last, b.again_first, b.again_last);
}

/// The start of the smallest gap of at least `bytes` among the blocks that live with `one`, sorted by offset.
int64_t find_gap(const std::vector<Block>& placed, const Block& one, int64_t bytes) {
  int64_t cursor = 0, best = -1, best_gap = INT64_MAX;
  for (const Block& other : placed) {
    if (!live_together(other, one)) continue;
    const int64_t gap = other.offset - cursor;
    if (gap >= bytes && gap < best_gap) {
      best = cursor;
      best_gap = gap;
    }
    cursor = std::max(cursor, other.end);
  }
  return best >= 0 ? best : cursor;
}

/// Places the intervals in the given order, each into the smallest gap among those placed already that it fits.
/// Returns the arena's size; it stops, with more than `limit`, where the arena would be larger than that.
int64_t place_in_order(std::vector<Interval>& intervals, const std::vector<int>& order, int64_t limit) {
  std::vector<Block> placed;
  placed.reserve(order.size());
  int64_t arena = 0;
  for (const int index : order) {
    Interval& interval = intervals[static_cast<size_t>(index)];
    const int64_t bytes = align_up(interval.bytes);
    Block block{0, 0, interval.first, interval.last, interval.again_first, interval.again_last};
    block.offset = interval.offset = find_gap(placed, block, bytes);
    block.end = block.offset + bytes;
    arena = std::max(arena, block.end);
    if (arena > limit) break;
    placed.insert(std::ranges::upper_bound(placed, block.offset, {}, &Block::offset), block);
  }
  return arena;
}

struct Placed {
  std::vector<Interval> intervals;
  std::vector<int> order;  // in which they were placed
  int64_t arena = 0;
};

constexpr int kTrials = 200;
constexpr double kNearEnough = 1.01;  // of the lower bound: what is left is not worth the time

/// Hill climbing over orders: what lies at the top is placed earlier, at a drawn position.
void improve(Placed& best, int64_t lower_bound) {
  RandomStream random(0);
  for (int trial = 0; trial < kTrials; ++trial) {
    if (static_cast<double>(best.arena) <= kNearEnough * static_cast<double>(lower_bound)) return;
    Placed next = best;
    for (size_t at = 1; at < next.order.size(); ++at) {
      const Interval& interval = best.intervals[static_cast<size_t>(best.order[at])];
      if (interval.offset + align_up(interval.bytes) < best.arena) continue;
      const auto position = static_cast<std::ptrdiff_t>(random.below(static_cast<uint32_t>(at)));
      const auto begin = next.order.begin();
      std::rotate(begin + position, begin + static_cast<std::ptrdiff_t>(at),
                  begin + static_cast<std::ptrdiff_t>(at) + 1);
    }
    next.arena = place_in_order(next.intervals, next.order, best.arena);
    if (next.arena <= best.arena) best = std::move(next);
  }
}

}  // namespace

std::vector<int64_t> live_bytes(const std::vector<Interval>& intervals, int steps) {
  std::vector<int64_t> change(static_cast<size_t>(steps) + 1, 0), again(static_cast<size_t>(steps), 0);
  for (const Interval& interval : intervals) {
    change[static_cast<size_t>(interval.first)] += align_up(interval.bytes);
    change[static_cast<size_t>(interval.last) + 1] -= align_up(interval.bytes);
    for (int step = interval.again_first; step <= interval.again_last; ++step)
      if (step < interval.first || step > interval.last) again[static_cast<size_t>(step)] += align_up(interval.bytes);
  }
  std::vector<int64_t> live(static_cast<size_t>(steps));
  std::partial_sum(change.begin(), change.end() - 1, live.begin());
  std::transform(live.begin(), live.end(), again.begin(), live.begin(), std::plus<>());
  return live;
}

int64_t pack_intervals(std::vector<Interval>& intervals) {
  int steps = 0;
  for (const Interval& interval : intervals) steps = std::max({steps, interval.last + 1, interval.again_last + 1});
  const std::vector<int64_t> live = live_bytes(intervals, steps);
  const int64_t lower_bound = live.empty() ? 0 : *std::max_element(live.begin(), live.end());
  const int peak = live.empty() ? 0 : static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());

  using Key = std::function<double(const Interval&)>;  // larger first
  const auto length = [](const Interval& i) {
    return static_cast<double>(i.last - i.first + 1 + i.again_last - i.again_first + 1);
  };
  const std::vector<Key> keys = {
      [](const Interval& i) { return static_cast<double>(i.bytes); },
      [&](const Interval& i) { return static_cast<double>(i.bytes) * length(i); },
      [&](const Interval& i) { return length(i); },
      [&](const Interval& i) {  // what stands in the peak first, the longest-lived at the bottom
        return (i.lives_at(peak) ? 1e9 : 0.0) + length(i);
      },
  };
  Placed best;
  for (const Key& key : keys) {
    Placed trial{intervals, {}, 0};
    for (size_t index = 0; index < intervals.size(); ++index)
      if (intervals[index].bytes > 0) trial.order.push_back(static_cast<int>(index));
    std::stable_sort(trial.order.begin(), trial.order.end(), [&](int a, int b) {
      return key(intervals[static_cast<size_t>(a)]) > key(intervals[static_cast<size_t>(b)]);
    });
    trial.arena = place_in_order(trial.intervals, trial.order, best.intervals.empty() ? INT64_MAX : best.arena - 1);
    if (best.intervals.empty() || trial.arena < best.arena) best = std::move(trial);
    if (best.arena == lower_bound) break;
  }
  improve(best, lower_bound);
  intervals = std::move(best.intervals);
  return best.arena;
}

}  // namespace weft
