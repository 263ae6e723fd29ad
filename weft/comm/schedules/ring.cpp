#include <algorithm>

#include "weft/base/parallel.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

Schedule make_ring(int member, int size, int64_t elements, int64_t chunk) {
  Schedule schedule{.elements = elements, .slots = 0, .actions = {}};
  if (size == 1) return schedule;
  const int64_t largest_piece = (elements + size - 1) / size;
  const auto chunks = static_cast<int>(std::max<int64_t>(1, (largest_piece + chunk - 1) / chunk));
  schedule.slots = 2 * (size - 1) * chunks;
  const int next = (member + 1) % size, previous = (member + size - 1) % size;
  const auto wrap = [size](int piece) { return ((piece % size) + size) % size; };
  const auto range = [&](int piece, int part) {
    const auto [begin, end] = split_range(elements, piece, size);
    const auto [first, last] = split_range(end - begin, part, chunks);
    return std::pair{begin + first, begin + last};
  };
  const auto index = [&](int piece, int part) { return static_cast<size_t>(wrap(piece) * chunks + part); };
  // Per chunk: what made its present content, and what still reads it.
  std::vector<int32_t> made(static_cast<size_t>(size * chunks), -1), read(static_cast<size_t>(size * chunks), -1);
  for (int step = 0; step < 2 * (size - 1); ++step) {
    const bool gathers = step >= size - 1;
    const int first = gathers ? member + 1 - (step - (size - 1)) : member - step;
    for (int part = 0; part < chunks; ++part) {
      const int32_t slot = step * chunks + part;
      const size_t sent = index(first, part), received = index(first - 1, part);
      const auto [send_begin, send_end] = range(wrap(first), part);
      read[sent] = add_action(schedule, ActionKind::send, next, slot, send_begin, send_end, {made[sent]});
      const auto [begin, end] = range(wrap(first - 1), part);
      made[received] =
          gathers ? add_action(schedule, ActionKind::receive_copy, previous, slot, begin, end, {read[received]})
                  : add_action(schedule, ActionKind::receive_add, previous, slot, begin, end);
    }
  }
  return schedule;
}

}  // namespace weft::comm
