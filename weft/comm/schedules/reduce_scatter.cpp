#include "weft/comm/schedules/reduce_scatter.h"

#include "weft/comm/schedules/reversed.h"

namespace weft::comm {

namespace {

/// Each begins with its neighbour, and sends to one after the other, so that no member hears from several at once: that
/// would not be so backwards.
Schedule make_direct_reduce_scatter(int member, const std::vector<int64_t>& begins) {
  const int size = static_cast<int>(begins.size()) - 1;
  Schedule schedule{.elements = begins.back(), .slots = 1, .actions = {}};
  const auto own = static_cast<size_t>(member);
  int32_t sent = -1, added = -1;
  for (int distance = 1; distance < size; ++distance) {
    const int to = (member + distance) % size, from = (member + size - distance) % size;
    const auto theirs = static_cast<size_t>(to);
    const int32_t next = add_action(schedule, ActionKind::send, to, 0, begins[theirs], begins[theirs + 1], {sent});
    if (next >= 0) sent = next;
    added = add_action(schedule, ActionKind::receive_add, from, 0, begins[own], begins[own + 1], {added});
  }
  return schedule;
}

}  // namespace

Schedule make_reduce_scatter_schedule(Algorithm algorithm, int member, const std::vector<int64_t>& begins,
                                      int64_t chunk) {
  if (algorithm == Algorithm::direct_exchange) return make_direct_reduce_scatter(member, begins);
  return reversed(make_gather_schedule(algorithm, member, begins, chunk));
}

}  // namespace weft::comm
