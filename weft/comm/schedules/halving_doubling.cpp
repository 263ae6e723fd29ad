#include <bit>

#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

Schedule make_halving_doubling(int member, int size, int64_t elements) {
  Schedule schedule{.elements = elements, .slots = 66, .actions = {}};
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int beyond = size - core;  // of the first 2 * beyond members each second one stands aside
  constexpr int32_t kGather = 32, kGive = 64, kGiveBack = 65;
  if (member < 2 * beyond && member % 2 == 1) {
    const int32_t given = add_action(schedule, ActionKind::send, member - 1, kGive, 0, elements);
    add_action(schedule, ActionKind::receive_copy, member - 1, kGiveBack, 0, elements, {given});
    return schedule;
  }
  const bool has_partner = member < 2 * beyond;
  const int place = has_partner ? member / 2 : member - beyond;
  const auto member_at = [&](int at) { return at < beyond ? 2 * at : at + beyond; };
  int32_t summed = -1;
  if (has_partner) summed = add_action(schedule, ActionKind::receive_add, member + 1, kGive, 0, elements);

  struct Exchange {
    int peer;
    int64_t sent_begin, sent_end, kept_begin, kept_end;
    int32_t sent;
  };
  std::vector<Exchange> exchanges;
  int64_t begin = 0, end = elements;
  int32_t slot = 0;
  for (int distance = 1; distance < core; distance *= 2, ++slot) {
    const int64_t middle = begin + (end - begin) / 2;
    const bool keeps_first = (place & distance) == 0;
    Exchange exchange{.peer = member_at(place ^ distance),
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
  if (has_partner) add_action(schedule, ActionKind::send, member + 1, kGiveBack, 0, elements, have);
  return schedule;
}

}  // namespace weft::comm
