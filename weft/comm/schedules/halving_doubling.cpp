#include "weft/comm/schedules/power_of_two.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

Schedule make_halving_doubling(int member, int size, int64_t elements) {
  Schedule schedule{.elements = elements, .slots = 66, .actions = {}};
  const PowerOfTwo group(member, size);
  constexpr int32_t kGather = 32, kGive = 64;
  if (group.stands_aside()) {
    group.add_aside(schedule, kGive);
    return schedule;
  }
  const int place = group.place();
  int32_t summed = group.take(schedule, kGive);

  struct Exchange {
    int peer;
    int64_t sent_begin, sent_end, kept_begin, kept_end;
    int32_t sent;
  };
  std::vector<Exchange> exchanges;
  int64_t begin = 0, end = elements;
  int32_t slot = 0;
  for (int distance = 1; distance < group.core(); distance *= 2, ++slot) {
    const int64_t middle = begin + (end - begin) / 2;
    const bool keeps_first = (place & distance) == 0;
    Exchange exchange{.peer = group.member_at(place ^ distance),
                      .sent_begin = keeps_first ? middle : begin,
                      .sent_end = keeps_first ? end : middle,
                      .kept_begin = keeps_first ? begin : middle,
                      .kept_end = keeps_first ? middle : end,
                      .sent = -1};
    exchange.sent =
        add_action(schedule, ActionKind::send, exchange.peer, slot, exchange.sent_begin, exchange.sent_end, {summed});
    // Where nothing is left to be received, what was summed before still has to be waited for.
    const int32_t added = add_action(schedule, ActionKind::receive_add, exchange.peer, slot, exchange.kept_begin,
                                     exchange.kept_end, {summed});
    if (added >= 0) summed = added;
    begin = exchange.kept_begin;
    end = exchange.kept_end;
    exchanges.push_back(exchange);
  }
  std::vector<int32_t> have{summed};  // the whole of what is sent next
  for (size_t i = exchanges.size(); i-- > 0;) {
    const Exchange& exchange = exchanges[i];
    const int32_t gather = kGather + static_cast<int32_t>(i);
    add_action(schedule, ActionKind::send, exchange.peer, gather, exchange.kept_begin, exchange.kept_end, have);
    have.push_back(add_action(schedule, ActionKind::receive_copy, exchange.peer, gather, exchange.sent_begin,
                              exchange.sent_end, {exchange.sent}));
  }
  group.give_back(schedule, kGive, have);
  return schedule;
}

}  // namespace weft::comm
