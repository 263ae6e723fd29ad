#include "weft/comm/schedules/all_gather.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "weft/base/parallel.h"

namespace weft::comm {

namespace {

int size_of_group(const std::vector<int64_t>& begins) { return static_cast<int>(begins.size()) - 1; }
int wrap(int member, int size) { return ((member % size) + size) % size; }

}  // namespace

Schedule make_ring_gather(int member, const std::vector<int64_t>& begins, int64_t chunk) {
  const int size = size_of_group(begins), next = wrap(member + 1, size), previous = wrap(member - 1, size);
  int64_t largest = 0;
  for (size_t piece = 0; piece + 1 < begins.size(); ++piece)
    largest = std::max(largest, begins[piece + 1] - begins[piece]);
  const auto chunks = chunk > 0 ? static_cast<int>(std::max<int64_t>(1, (largest + chunk - 1) / chunk)) : 1;
  Schedule schedule{.elements = begins.back(), .slots = std::max(size - 1, 0) * chunks, .actions = {}};
  const auto range = [&](int owner, int part) {
    const auto piece = static_cast<size_t>(wrap(owner, size));
    const auto [first, last] = split_range(begins[piece + 1] - begins[piece], part, chunks);
    return std::pair{begins[piece] + first, begins[piece] + last};
  };
  std::vector<int32_t> got(static_cast<size_t>(chunks), -1);
  for (int step = 0; step < size - 1; ++step)
    for (int part = 0; part < chunks; ++part) {
      const int32_t slot = step * chunks + part;
      int32_t& before = got[static_cast<size_t>(part)];
      const auto [send_begin, send_end] = range(member - step, part);
      add_action(schedule, ActionKind::send, next, slot, send_begin, send_end, {before});
      const auto [begin, end] = range(member - step - 1, part);
      before = add_action(schedule, ActionKind::receive_copy, previous, slot, begin, end);
    }
  return schedule;
}

Schedule make_doubling_gather(int member, const std::vector<int64_t>& begins) {
  const int size = size_of_group(begins);
  const auto slots = static_cast<int32_t>(2 * std::bit_width(static_cast<unsigned>(size - 1)));
  // Pieces of neighbours lie together but where the row begins anew: an exchange is of up to two intervals.
  Schedule schedule{.elements = begins.back(), .slots = slots, .actions = {}};
  const auto exchange = [&](ActionKind kind, int peer, int32_t slot, int first, int count,
                            const std::vector<int32_t>& after, std::vector<int32_t>& made) {
    const int until_end = std::min(count, size - first);
    const auto begin = static_cast<size_t>(first);
    made.push_back(
        add_action(schedule, kind, peer, slot, begins[begin], begins[begin + static_cast<size_t>(until_end)], after));
    if (count > until_end)
      made.push_back(
          add_action(schedule, kind, peer, slot + 1, 0, begins[static_cast<size_t>(count - until_end)], after));
  };
  std::vector<int32_t> have, sent;
  int32_t slot = 0;
  for (int distance = 1; distance < size; distance *= 2, slot += 2) {
    const int count = std::min(distance, size - distance);
    const int to = wrap(member - distance, size), from = wrap(member + distance, size);
    const std::vector<int32_t> before = have;
    exchange(ActionKind::send, to, slot, member, count, before, sent);
    exchange(ActionKind::receive_copy, from, slot, from, count, {}, have);
  }
  return schedule;
}

Schedule make_direct_gather(int member, const std::vector<int64_t>& begins) {
  const int size = size_of_group(begins);
  Schedule schedule{.elements = begins.back(), .slots = 1, .actions = {}};
  const auto own = static_cast<size_t>(member);
  // Each begins with its neighbour, and sends to one after the other, so that no member hears from several at once.
  int32_t sent = -1;
  for (int distance = 1; distance < size; ++distance) {
    const int to = wrap(member + distance, size), from = wrap(member - distance, size);
    const auto theirs = static_cast<size_t>(from);
    sent = add_action(schedule, ActionKind::send, to, 0, begins[own], begins[own + 1], {sent});
    add_action(schedule, ActionKind::receive_copy, from, 0, begins[theirs], begins[theirs + 1]);
  }
  return schedule;
}

const std::vector<Algorithm>& all_gather_algorithms() {
  static const std::vector<Algorithm> all = {Algorithm::ring, Algorithm::recursive_doubling,
                                             Algorithm::direct_exchange};
  return all;
}

Schedule make_gather_schedule(Algorithm algorithm, int member, const std::vector<int64_t>& begins, int64_t chunk) {
  if (algorithm == Algorithm::ring) return make_ring_gather(member, begins, chunk);
  if (algorithm == Algorithm::direct_exchange) return make_direct_gather(member, begins);
  return make_doubling_gather(member, begins);
}

}  // namespace weft::comm
