#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/parallel.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

Schedule make_hierarchical(int member, int size, int64_t elements, int64_t chunk, int groups) {
  check(groups > 0 && size % groups == 0, "groups of different sizes");
  const int of_group = size / groups, group = member / of_group, own = member % of_group;
  const auto chunks = static_cast<int>(std::max<int64_t>(1, (elements + chunk - 1) / chunk));
  Schedule schedule{.elements = elements, .slots = 2 * chunks, .actions = {}};
  const auto mate = [&](int index) { return group * of_group + index; };
  const auto peer = [&](int other) { return other * of_group + own; };
  for (int part = 0; part < chunks; ++part) {
    const auto [part_begin, part_end] = split_range(elements, part, chunks);
    const auto piece = [&, from = part_begin, count = part_end - part_begin](int index) {
      const auto [begin, end] = split_range(count, index, of_group);
      return std::pair{from + begin, from + end};
    };
    const auto [own_begin, own_end] = piece(own);
    const auto share = [&, from = own_begin, count = own_end - own_begin](int other) {
      const auto [begin, end] = split_range(count, other, groups);
      return std::pair{from + begin, from + end};
    };
    // Slots are per pair and direction: mates and peers are never the same member.
    const int32_t sums = 2 * part, results = sums + 1;
    std::vector<int32_t> given(static_cast<size_t>(of_group), -1), exchanged(static_cast<size_t>(groups), -1), have;
    int32_t summed = -1;
    for (int distance = 1; distance < of_group; ++distance) {
      const int to = (own + distance) % of_group, from = (own + of_group - distance) % of_group;
      const auto [begin, end] = piece(to);
      given[static_cast<size_t>(to)] = add_action(schedule, ActionKind::send, mate(to), sums, begin, end);
      summed = add_action(schedule, ActionKind::receive_add, mate(from), sums, own_begin, own_end, {summed});
    }
    const auto [share_begin, share_end] = share(group);
    int32_t added = summed;
    for (int distance = 1; distance < groups; ++distance) {
      const int to = (group + distance) % groups, from = (group + groups - distance) % groups;
      const auto [begin, end] = share(to);
      exchanged[static_cast<size_t>(to)] = add_action(schedule, ActionKind::send, peer(to), sums, begin, end, {summed});
      const int32_t next =
          add_action(schedule, ActionKind::receive_add, peer(from), sums, share_begin, share_end, {added});
      if (next >= 0) added = next;
    }
    have.push_back(added);
    for (int distance = 1; distance < groups; ++distance) {
      const int to = (group + distance) % groups, from = (group + groups - distance) % groups;
      add_action(schedule, ActionKind::send, peer(to), results, share_begin, share_end, {added});
      const auto [begin, end] = share(from);
      have.push_back(add_action(schedule, ActionKind::receive_copy, peer(from), results, begin, end,
                                {exchanged[static_cast<size_t>(from)]}));
    }
    for (int distance = 1; distance < of_group; ++distance) {
      const int to = (own + distance) % of_group, from = (own + of_group - distance) % of_group;
      add_action(schedule, ActionKind::send, mate(to), results, own_begin, own_end, have);
      const auto [begin, end] = piece(from);
      add_action(schedule, ActionKind::receive_copy, mate(from), results, begin, end,
                 {given[static_cast<size_t>(from)]});
    }
  }
  return schedule;
}

}  // namespace weft::comm
