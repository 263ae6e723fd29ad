#include "weft/comm/schedules/power_of_two.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

Schedule make_recursive_doubling(int member, int size, int64_t elements) {
  Schedule schedule{.elements = elements, .slots = 34, .actions = {}};
  const PowerOfTwo group(member, size);
  constexpr int32_t kGive = 32;
  if (group.stands_aside()) {
    group.add_aside(schedule, kGive);
    return schedule;
  }
  int32_t summed = group.take(schedule, kGive);
  int32_t slot = 0;
  for (int distance = 1; distance < group.core(); distance *= 2, ++slot) {
    const int peer = group.member_at(group.place() ^ distance);
    const int32_t sent = add_action(schedule, ActionKind::send, peer, slot, 0, elements, {summed});
    summed = add_action(schedule, ActionKind::receive_add, peer, slot, 0, elements, {summed, sent});
  }
  group.give_back(schedule, kGive, {summed});
  return schedule;
}

}  // namespace weft::comm
