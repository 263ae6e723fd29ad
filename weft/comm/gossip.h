// Who lives, by hearsay. Each rank counts its own turns and tells a few others all the counts that it knows; they keep
// the larger ones and tell them on (van Renesse, Minsky and Hayden 1998, "A gossip-style failure detection service",
// section 3). A rank tells those that come 1, 2, 4, 8... places behind it, so that a count reaches n ranks in log2(n)
// turns at most, and it takes log2(n) lost ranks at chosen places to cut off another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::comm {

class Gossip {
 public:
  explicit Gossip(int ranks) : counts_(static_cast<size_t>(ranks), 0), seen_(counts_) {}

  /// Whom `rank` tells, and who tells it.
  static std::vector<int> listeners_of(int rank, int ranks);
  static std::vector<int> tellers_of(int rank, int ranks);

  /// By rank: the turns of each, as far as they are known here.
  std::span<const uint32_t> counts() const { return counts_; }
  void hear(int rank, uint32_t count);
  /// One count per rank.
  void hear(std::span<const uint32_t> counts);
  /// Whether the rank has counted on since this was asked last.
  bool has_news_of(int rank);

 private:
  std::vector<uint32_t> counts_, seen_;
};

}  // namespace weft::comm
