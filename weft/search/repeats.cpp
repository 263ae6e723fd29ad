#include "weft/search/repeats.h"

namespace weft::search {

namespace {

/// Of the tokens from `begin` to `end`; a count of 1 where nothing repeats.
Repeat largest_repeat(const std::vector<uint64_t>& row, size_t begin, size_t end) {
  Repeat best{begin, 1, 1};
  size_t covered = 1;
  for (size_t length = 1; 2 * length <= end - begin; ++length) {
    size_t equal = 0;  // tokens from here on that stand `length` farther on, too
    for (size_t at = end - length; at-- > begin;) {
      equal = row[at] == row[at + length] ? equal + 1 : 0;
      if (equal < length) continue;
      const size_t count = equal / length + 1;
      if (count * length < covered || (count * length == covered && length != best.length)) continue;
      best = {at, length, count};
      covered = count * length;
    }
  }
  return best;
}

void add_repeats(const std::vector<uint64_t>& row, size_t begin, size_t end, std::vector<Repeat>& all) {
  if (begin == end) return;
  const Repeat best = largest_repeat(row, begin, end);
  if (best.count == 1) {
    for (size_t at = begin; at < end; ++at) all.push_back({at, 1, 1});
    return;
  }
  add_repeats(row, begin, best.begin, all);
  all.push_back(best);
  add_repeats(row, best.begin + best.length * best.count, end, all);
}

}  // namespace

std::vector<Repeat> find_repeats(const std::vector<uint64_t>& row) {
  std::vector<Repeat> all;
  add_repeats(row, 0, row.size(), all);
  return all;
}

}  // namespace weft::search
