#include "weft/comm/schedules/schedules.h"

#include <algorithm>

namespace weft::comm {

int32_t add_action(Schedule& schedule, ActionKind kind, int peer, int32_t slot, int64_t begin, int64_t end,
                   const std::vector<int32_t>& after) {
  if (begin >= end) return -1;
  Action action{.kind = kind, .peer = peer, .slot = slot, .begin = begin, .end = end, .after = {}};
  for (const int32_t earlier : after)
    if (earlier >= 0) action.after.push_back(earlier);
  schedule.actions.push_back(std::move(action));
  return static_cast<int32_t>(schedule.actions.size()) - 1;
}

Schedule in_parts(const Schedule& schedule, int64_t most_elements) {
  Schedule parted{.elements = schedule.elements, .slots = schedule.slots, .actions = {}};
  std::vector<std::vector<int32_t>> parts_of(schedule.actions.size());
  for (size_t a = 0; a < schedule.actions.size(); ++a) {
    Action part = schedule.actions[a];
    const int64_t end = part.end, most = part.kind == ActionKind::all_reduce ? end : most_elements;
    part.after.clear();
    for (const int32_t earlier : schedule.actions[a].after) {
      const std::vector<int32_t>& parts = parts_of[static_cast<size_t>(earlier)];
      part.after.insert(part.after.end(), parts.begin(), parts.end());
    }
    do {  // also a message of no elements is one
      part.end = std::min(end, part.begin + most);
      parts_of[a].push_back(static_cast<int32_t>(parted.actions.size()));
      parted.actions.push_back(part);
      part.begin = part.end;
    } while (part.begin < end);
  }
  return parted;
}

bool is_chunked(Algorithm algorithm) {
  return algorithm == Algorithm::ring || algorithm == Algorithm::double_binary_tree ||
         algorithm == Algorithm::hierarchical;
}

Schedule make_schedule(Algorithm algorithm, int member, int size, int64_t elements, int64_t chunk, int groups) {
  switch (algorithm) {
    case Algorithm::ring:
      return make_ring(member, size, elements, chunk);
    case Algorithm::halving_doubling:
      return make_halving_doubling(member, size, elements);
    case Algorithm::recursive_doubling:
      return make_recursive_doubling(member, size, elements);
    case Algorithm::double_binary_tree:
      return make_double_binary_tree(member, size, elements, chunk);
    case Algorithm::hierarchical:
      return make_hierarchical(member, size, elements, chunk, groups);
    case Algorithm::native:
      return make_native(elements);
    default:
      break;
  }
  return make_direct_exchange(member, size, elements);
}

Schedule make_native(int64_t elements) {
  Schedule schedule{.elements = elements, .slots = 0, .actions = {}};
  add_action(schedule, ActionKind::all_reduce, /*peer=*/-1, /*slot=*/-1, 0, elements);
  return schedule;
}

std::string_view name_of(Algorithm algorithm) {
  constexpr std::string_view names[] = {
      "ring", "halving-doubling", "doubling", "double-tree", "direct", "chain", "tree", "MPI", "hierarchical"};
  return names[static_cast<size_t>(algorithm)];
}

std::optional<Algorithm> parse_algorithm(std::string_view name) {
  for (const Algorithm algorithm : all_algorithms())
    if (name_of(algorithm) == name) return algorithm;
  return std::nullopt;
}

const std::vector<Algorithm>& all_algorithms() {
  static const std::vector<Algorithm> all = {Algorithm::ring, Algorithm::halving_doubling,
                                             Algorithm::recursive_doubling, Algorithm::double_binary_tree,
                                             Algorithm::direct_exchange};
  return all;
}

}  // namespace weft::comm
