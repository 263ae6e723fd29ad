#include <vector>

#include "weft/base/parallel.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

Schedule make_direct_exchange(int member, int size, int64_t elements) {
  Schedule schedule{.elements = elements, .slots = 2, .actions = {}};
  const auto [own_begin, own_end] = split_range(elements, member, size);
  std::vector<int32_t> sent(static_cast<size_t>(size), -1);
  int32_t summed = -1;
  // Each begins with its neighbour, so that no member is everybody's first.
  for (int distance = 1; distance < size; ++distance) {
    const int to = (member + distance) % size, from = (member + size - distance) % size;
    const auto [begin, end] = split_range(elements, to, size);
    sent[static_cast<size_t>(to)] = add_action(schedule, ActionKind::send, to, 0, begin, end);
    summed = add_action(schedule, ActionKind::receive_add, from, 0, own_begin, own_end, {summed});
  }
  for (int distance = 1; distance < size; ++distance) {
    const int to = (member + distance) % size, from = (member + size - distance) % size;
    add_action(schedule, ActionKind::send, to, 1, own_begin, own_end, {summed});
    const auto [begin, end] = split_range(elements, from, size);
    add_action(schedule, ActionKind::receive_copy, from, 1, begin, end, {sent[static_cast<size_t>(from)]});
  }
  return schedule;
}

}  // namespace weft::comm
