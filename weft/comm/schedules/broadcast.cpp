#include "weft/comm/schedules/broadcast.h"

#include <algorithm>

#include "weft/base/parallel.h"
#include "weft/comm/schedules/reversed.h"

namespace weft::comm {

namespace {

/// Receives from `parent` (-1: none) and passes on to `children`, part by part.
Schedule pass_on(int parent, const std::vector<int>& children, int64_t elements, int64_t chunk) {
  const auto chunks = chunk > 0 ? static_cast<int>(std::max<int64_t>(1, (elements + chunk - 1) / chunk)) : 1;
  Schedule schedule{.elements = elements, .slots = chunks, .actions = {}};
  for (int32_t part = 0; part < chunks; ++part) {
    const auto [begin, end] = split_range(elements, part, chunks);
    const int32_t got = parent < 0 ? -1 : add_action(schedule, ActionKind::receive_copy, parent, part, begin, end);
    for (const int child : children) add_action(schedule, ActionKind::send, child, part, begin, end, {got});
  }
  return schedule;
}

int place_of(int member, int size, int root) { return (member - root + size) % size; }

}  // namespace

Schedule make_chain_broadcast(int member, int size, int root, int64_t elements, int64_t chunk) {
  const int place = place_of(member, size, root);
  std::vector<int> children;
  if (place + 1 < size) children.push_back((member + 1) % size);
  return pass_on(place == 0 ? -1 : (member + size - 1) % size, children, elements, chunk);
}

Schedule make_tree_broadcast(int member, int size, int root, int64_t elements, int64_t chunk) {
  const int place = place_of(member, size, root);
  int mask = 1;
  while (mask < size && (place & mask) == 0) mask <<= 1;
  const int parent = place == 0 ? -1 : (place - mask + root) % size;
  std::vector<int> children;  // those with the most below them first
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (place + mask < size) children.push_back((place + mask + root) % size);
  return pass_on(parent, children, elements, chunk);
}

Schedule make_direct_broadcast(int member, int size, int root, int64_t elements) {
  std::vector<int> children;
  for (int distance = 1; member == root && distance < size; ++distance) children.push_back((root + distance) % size);
  return pass_on(member == root ? -1 : root, children, elements, 0);
}

const std::vector<Algorithm>& broadcast_algorithms() {
  static const std::vector<Algorithm> all = {Algorithm::chain, Algorithm::binomial_tree, Algorithm::direct_exchange};
  return all;
}

Schedule make_broadcast_schedule(Algorithm algorithm, int member, int size, int root, int64_t elements, int64_t chunk) {
  if (algorithm == Algorithm::chain) return make_chain_broadcast(member, size, root, elements, chunk);
  if (algorithm == Algorithm::binomial_tree) return make_tree_broadcast(member, size, root, elements, chunk);
  return make_direct_broadcast(member, size, root, elements);
}

Schedule make_reduction_schedule(Algorithm algorithm, int member, int size, int root, int64_t elements, int64_t chunk) {
  return reversed(make_broadcast_schedule(algorithm, member, size, root, elements, chunk));
}

}  // namespace weft::comm
