#include <algorithm>
#include <vector>

#include "weft/base/parallel.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

namespace {

/// In a binary tree whose leaves are the odd places; place 0 is the root and has one child. -1: none.
int parent_in_tree(int place, int size) {
  if (place == 0) return -1;
  const int bit = place & -place;
  const int parent = (place ^ bit) | (bit << 1);
  return parent < size ? parent : place ^ bit;
}

/// The second tree is the first one mirrored, or moved by one where the size is odd: so leaves become inner nodes.
int place_in_tree(int tree, int member, int size) {
  if (tree == 0) return member;
  return size % 2 == 0 ? size - 1 - member : (member + size - 1) % size;
}
int member_of(int tree, int place, int size) {
  if (tree == 0) return place;
  return size % 2 == 0 ? size - 1 - place : (place + 1) % size;
}

}  // namespace

Schedule make_double_binary_tree(int member, int size, int64_t elements, int64_t chunk) {
  Schedule schedule{.elements = elements, .slots = 0, .actions = {}};
  if (size == 1) return schedule;
  struct Neighbours {
    int parent = -1;
    std::vector<int> children;
  };
  std::vector<Neighbours> trees(2);
  for (int tree = 0; tree < 2; ++tree) {
    const int place = place_in_tree(tree, member, size), parent = parent_in_tree(place, size);
    Neighbours& mine = trees[static_cast<size_t>(tree)];
    if (parent >= 0) mine.parent = member_of(tree, parent, size);
    for (int other = 0; other < size; ++other)
      if (parent_in_tree(other, size) == place) mine.children.push_back(member_of(tree, other, size));
  }
  const int64_t largest_half = (elements + 1) / 2;
  const auto chunks = static_cast<int>(std::max<int64_t>(1, (largest_half + chunk - 1) / chunk));
  schedule.slots = 4 * chunks;
  for (int part = 0; part < chunks; ++part)
    for (int tree = 0; tree < 2; ++tree) {
      const Neighbours& mine = trees[static_cast<size_t>(tree)];
      const auto [half_begin, half_end] = split_range(elements, tree, 2);
      const auto [first, last] = split_range(half_end - half_begin, part, chunks);
      const int64_t begin = half_begin + first, end = half_begin + last;
      const int32_t up = (part * 2 + tree) * 2, down = up + 1;
      int32_t whole = -1;  // what made the content
      for (const int child : mine.children)
        whole = add_action(schedule, ActionKind::receive_add, child, up, begin, end, {whole});
      if (mine.parent >= 0) {
        const int32_t sent = add_action(schedule, ActionKind::send, mine.parent, up, begin, end, {whole});
        whole = add_action(schedule, ActionKind::receive_copy, mine.parent, down, begin, end, {sent});
      }
      for (const int child : mine.children) add_action(schedule, ActionKind::send, child, down, begin, end, {whole});
    }
  return schedule;
}

}  // namespace weft::comm
