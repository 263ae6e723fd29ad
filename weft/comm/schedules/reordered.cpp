#include "weft/comm/schedules/reordered.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/comm/schedules/reduce_scatter.h"

namespace weft::comm {

namespace {

/// Where pieces would begin if they lay in the order of places.
std::vector<int64_t> begins_by_place(const std::vector<int64_t>& begins, const std::vector<int>& order) {
  std::vector<int64_t> by_place{0};
  for (const int host : order) {
    const auto piece = static_cast<size_t>(host);
    by_place.push_back(by_place.back() + begins[piece + 1] - begins[piece]);
  }
  return by_place;
}

using Interval = std::pair<int64_t, int64_t>;

/// Where the elements [begin, end) of pieces by place lie.
std::vector<Interval> intervals_of(int64_t begin, int64_t end, const std::vector<int64_t>& by_place,
                                   const std::vector<int64_t>& begins, const std::vector<int>& order) {
  std::vector<Interval> intervals;
  for (size_t place = 0; place < order.size(); ++place) {
    const int64_t first = std::max(begin, by_place[place]), last = std::min(end, by_place[place + 1]);
    if (first >= last) continue;
    const int64_t moved = begins[static_cast<size_t>(order[place])] - by_place[place];
    if (!intervals.empty() && intervals.back().second == first + moved)
      intervals.back().second = last + moved;
    else
      intervals.emplace_back(first + moved, last + moved);
  }
  return intervals;
}

/// `most`: intervals of a message, the same for all members.
Schedule moved(const Schedule& schedule, const std::vector<int64_t>& begins, const std::vector<int>& order, int most) {
  const std::vector<int64_t> by_place = begins_by_place(begins, order);
  Schedule result{.elements = schedule.elements, .slots = schedule.slots * most, .actions = {}};
  std::vector<std::vector<int32_t>> actions_of;  // per action of the original
  for (const Action& action : schedule.actions) {
    std::vector<int32_t> after;
    for (const int32_t earlier : action.after)
      after.insert(after.end(), actions_of[static_cast<size_t>(earlier)].begin(),
                   actions_of[static_cast<size_t>(earlier)].end());
    const std::vector<Interval> intervals = intervals_of(action.begin, action.end, by_place, begins, order);
    check(intervals.size() <= static_cast<size_t>(most), "a message of more pieces than there are slots");
    actions_of.emplace_back();
    int32_t slot = action.slot * most;
    for (const auto& [begin, end] : intervals)
      actions_of.back().push_back(add_action(result, action.kind, action.peer, slot++, begin, end, after));
  }
  return result;
}

int most_pieces(Algorithm algorithm, const std::vector<int>& order) {
  return algorithm == Algorithm::recursive_doubling ? static_cast<int>(order.size()) : 1;
}

}  // namespace

Schedule make_gather_schedule(Algorithm algorithm, int place, const std::vector<int64_t>& begins, int64_t chunk,
                              const std::vector<int>& order) {
  if (order.empty()) return make_gather_schedule(algorithm, place, begins, chunk);
  return moved(make_gather_schedule(algorithm, place, begins_by_place(begins, order), chunk), begins, order,
               most_pieces(algorithm, order));
}

Schedule make_reduce_scatter_schedule(Algorithm algorithm, int place, const std::vector<int64_t>& begins, int64_t chunk,
                                      const std::vector<int>& order) {
  if (order.empty()) return make_reduce_scatter_schedule(algorithm, place, begins, chunk);
  return moved(make_reduce_scatter_schedule(algorithm, place, begins_by_place(begins, order), chunk), begins, order,
               most_pieces(algorithm, order));
}

}  // namespace weft::comm
