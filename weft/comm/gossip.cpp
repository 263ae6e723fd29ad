#include "weft/comm/gossip.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::comm {

std::vector<int> Gossip::listeners_of(int rank, int ranks) {
  std::vector<int> listeners;
  for (int distance = 1; distance < ranks; distance *= 2) listeners.push_back((rank + distance) % ranks);
  return listeners;
}

std::vector<int> Gossip::tellers_of(int rank, int ranks) {
  std::vector<int> tellers;
  for (int distance = 1; distance < ranks; distance *= 2) tellers.push_back((rank - distance + ranks) % ranks);
  return tellers;
}

void Gossip::hear(int rank, uint32_t count) {
  uint32_t& known = counts_[static_cast<size_t>(rank)];
  known = std::max(known, count);
}

void Gossip::hear(std::span<const uint32_t> counts) {
  check(counts.size() == counts_.size(), "gossip of another group");
  for (size_t rank = 0; rank < counts.size(); ++rank) hear(static_cast<int>(rank), counts[rank]);
}

bool Gossip::has_news_of(int rank) {
  const auto at = static_cast<size_t>(rank);
  const bool is_new = counts_[at] != seen_[at];
  seen_[at] = counts_[at];
  return is_new;
}

}  // namespace weft::comm
