#include "weft/comm/schedules/reversed.h"

#include "weft/base/error.h"

namespace weft::comm {

Schedule reversed(const Schedule& schedule) {
  const size_t count = schedule.actions.size();
  Schedule result{.elements = schedule.elements, .slots = schedule.slots, .actions = {}};
  result.actions.resize(count);
  for (size_t index = 0; index < count; ++index) {
    const Action& from = schedule.actions[index];
    check(from.kind != ActionKind::receive_add, "a schedule with sums cannot be run backwards");
    const bool sent = from.kind == ActionKind::send;
    Action& to = result.actions[count - 1 - index];
    to.kind = sent ? ActionKind::receive_add : ActionKind::send;
    to.peer = from.peer;
    to.slot = from.slot;
    to.begin = from.begin;
    to.end = from.end;
    for (const int32_t earlier : from.after)
      result.actions[count - 1 - static_cast<size_t>(earlier)].after.push_back(static_cast<int32_t>(count - 1 - index));
  }
  int32_t added = -1;
  for (size_t index = 0; index < count; ++index) {
    Action& action = result.actions[index];
    if (action.kind != ActionKind::receive_add) continue;
    if (added >= 0 && (action.after.empty() || action.after.back() != added)) action.after.push_back(added);
    added = static_cast<int32_t>(index);
  }
  return result;
}

}  // namespace weft::comm
