#include "weft/comm/gossip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace weft::comm {
namespace {

/// One turn of all ranks but the lost ones: all messages of a turn leave before any arrives.
void turn(std::vector<Gossip>& ranks, const std::set<int>& lost = {}) {
  const int size = static_cast<int>(ranks.size());
  std::vector<std::vector<uint32_t>> told;
  for (int rank = 0; rank < size; ++rank) {
    Gossip& own = ranks[static_cast<size_t>(rank)];
    if (!lost.contains(rank)) own.hear(rank, own.counts()[static_cast<size_t>(rank)] + 1);
    told.emplace_back(own.counts().begin(), own.counts().end());
  }
  for (int rank = 0; rank < size; ++rank)
    for (const int listener : Gossip::listeners_of(rank, size))
      if (!lost.contains(rank) && !lost.contains(listener))
        ranks[static_cast<size_t>(listener)].hear(told[static_cast<size_t>(rank)]);
}

class GossipOfRanks : public testing::TestWithParam<int> {};

TEST_P(GossipOfRanks, WhoIsToldKnowsWhoTells) {
  const int size = GetParam();
  for (int rank = 0; rank < size; ++rank)
    for (const int listener : Gossip::listeners_of(rank, size)) {
      const std::vector<int> tellers = Gossip::tellers_of(listener, size);
      EXPECT_EQ(std::count(tellers.begin(), tellers.end(), rank), 1) << rank << " tells " << listener;
    }
}

TEST_P(GossipOfRanks, ReachesAllWithinTheLogarithmOfTheirNumber) {
  const int size = GetParam();
  std::vector<Gossip> ranks(static_cast<size_t>(size), Gossip(size));
  for (int reach = 1; reach < size; reach *= 2) turn(ranks);
  for (int of = 0; of < size; ++of)
    for (int at = 0; at < size; ++at) EXPECT_TRUE(ranks[static_cast<size_t>(at)].has_news_of(of)) << of << " at " << at;
}

INSTANTIATE_TEST_SUITE_P(Sizes, GossipOfRanks, testing::Values(2, 3, 64, 65, 100, 257));

TEST(Gossip, AMessageOfEachRankIsOnePerDoublingOfTheirNumber) {
  EXPECT_EQ(Gossip::listeners_of(7, 4096).size(), 12);
  EXPECT_EQ(Gossip::listeners_of(2, 5), (std::vector<int>{3, 4, 1}));
}

TEST(Gossip, TellsNoNewsOfALostRankAndOfAllOthers) {
  constexpr int kRanks = 100;
  const std::set<int> lost{1, 2, 3, 50};
  std::vector<Gossip> ranks(kRanks, Gossip(kRanks));
  for (int i = 0; i < 20; ++i) turn(ranks);
  const auto hear_all = [&] {
    std::set<int> silent;
    for (int of = 0; of < kRanks; ++of)
      if (!ranks[0].has_news_of(of)) silent.insert(of);
    return silent;
  };
  EXPECT_EQ(hear_all(), std::set<int>{});
  for (int i = 0; i < 20; ++i) turn(ranks, lost);
  hear_all();  // what was under way when they were lost
  for (int i = 0; i < 20; ++i) turn(ranks, lost);
  EXPECT_EQ(hear_all(), lost);
}

TEST(Gossip, OldNewsChangesNothing) {
  Gossip gossip(3);
  gossip.hear(std::vector<uint32_t>{5, 6, 7});
  gossip.hear(std::vector<uint32_t>{4, 9, 1});
  EXPECT_EQ(std::vector<uint32_t>(gossip.counts().begin(), gossip.counts().end()), (std::vector<uint32_t>{5, 9, 7}));
}

}  // namespace
}  // namespace weft::comm
