#include <bit>

#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

Schedule make_recursive_doubling(int member, int size, int64_t elements) {
  Schedule schedule{.elements = elements, .slots = 34, .actions = {}};
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int beyond = size - core;  // of the first 2 * beyond members each second one stands aside
  constexpr int32_t kGive = 32, kGiveBack = 33;
  if (member < 2 * beyond && member % 2 == 1) {
    const int32_t given = add_action(schedule, ActionKind::send, member - 1, kGive, 0, elements);
    add_action(schedule, ActionKind::receive_copy, member - 1, kGiveBack, 0, elements, {given});
    return schedule;
  }
  const bool has_partner = member < 2 * beyond;
  const int place = has_partner ? member / 2 : member - beyond;
  int32_t summed = -1;
  if (has_partner) summed = add_action(schedule, ActionKind::receive_add, member + 1, kGive, 0, elements);
  int32_t slot = 0;
  for (int distance = 1; distance < core; distance *= 2, ++slot) {
    const int other = place ^ distance, peer = other < beyond ? 2 * other : other + beyond;
    const int32_t sent = add_action(schedule, ActionKind::send, peer, slot, 0, elements, {summed});
    summed = add_action(schedule, ActionKind::receive_add, peer, slot, 0, elements, {summed, sent});
  }
  if (has_partner) add_action(schedule, ActionKind::send, member + 1, kGiveBack, 0, elements, {summed});
  return schedule;
}

}  // namespace weft::comm
