// What is read off links that were measured, each pair of hosts by itself.
#include "weft/comm/links/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/comm/two_switches.h"
#include "weft/base/rng.h"

namespace weft::comm {
namespace {

/// Links as they might be measured: each up to `noise` times slower than it is.
PairTable measured(int hosts, const Links& links, double noise, uint64_t seed) {
  PairTable table(hosts);
  for (const auto& [a, b] : all_pairs(hosts)) {
    LinkCosts link = links.of(a, b);
    const auto draw = [&] {
      seed = mix(seed, 1);
      return static_cast<double>(seed >> 11) / 9007199254740992.0;
    };
    link.bytes_per_second /= 1 + (noise - 1) * draw();
    link.latency_seconds *= 1 + (noise - 1) * draw();
    table.set(a, b, link);
  }
  return table;
}

TEST(Tournament, LetsEachMeetEachOnceAndNobodyTwiceInARound) {
  for (int hosts = 1; hosts <= 17; ++hosts) {
    std::set<std::pair<int, int>> met;
    for (const auto& round : tournament(hosts)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_TRUE(met.insert({a, b}).second);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second);
      }
    }
    EXPECT_EQ(met.size(), all_pairs(hosts).size()) << hosts;
    EXPECT_LE(tournament(hosts).size(), static_cast<size_t>(std::max(hosts, 1)));
  }
}

TEST(Grouping, OfEqualLinksIsOneGroupWhateverTheNoise) {
  for (int hosts = 2; hosts <= 16; ++hosts)
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const PairTable table = measured(hosts, kNear, 1.65, seed);
      ASSERT_EQ(find_groups(table).size(), 1u) << hosts << " hosts, seed " << seed;
    }
}

TEST(Grouping, OfEqualLinksGivesEqualCosts) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const AlikeLinks links = summarize(measured(8, kNear, 1.25, seed), all_pairs(8));
    EXPECT_TRUE(links.exceptions.empty()) << seed;
    EXPECT_GT(links.costs.bytes_per_second, kNear.bytes_per_second / 1.25);
    EXPECT_LE(links.costs.bytes_per_second, kNear.bytes_per_second);
  }
}

TEST(Grouping, FindsTheHostsOfASwitch) {
  for (const int hosts : {4, 6, 7, 16})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const auto groups = find_groups(measured(hosts, links_of_two_switches(hosts), 1.4, seed));
      ASSERT_EQ(groups.size(), 2u) << hosts;
      for (const auto& group : groups)
        for (const int host : group) EXPECT_EQ(host % 2, group.front() % 2);
    }
}

TEST(Grouping, FindsThemWhereALinkOrTwoBetweenThemWereMeasuredAlone) {
  PairTable table = measured(6, links_of_two_switches(6), 1.0, 1);
  table.set(0, 1, kNear);
  table.set(2, 5, kNear);
  EXPECT_EQ(find_groups(table), (std::vector<std::vector<int>>{{0, 2, 4}, {1, 3, 5}}));
}

TEST(Grouping, OfASlowHostIsNoGroupButAnException) {
  PairTable table = measured(5, kNear, 1.0, 1);
  for (int host = 0; host < 4; ++host) table.set(host, 4, kFar);
  EXPECT_EQ(find_groups(table).size(), 1u);
  const AlikeLinks links = summarize(table, all_pairs(5));
  EXPECT_EQ(links.costs, kNear);
  ASSERT_EQ(links.exceptions.size(), 4u);
  for (const Topology::Pair& pair : links.exceptions) {
    EXPECT_EQ(pair.second, 4);
    EXPECT_EQ(pair.costs, kFar);
  }
}

TEST(Grouping, OfLinksOfTheSameRateButFarAwayIsByLatency) {
  Topology topology = two_switches(4);
  const LinkCosts remote{.latency_seconds = 5e-3, .bytes_per_second = 125e6, .message_seconds = 2e-6};
  EXPECT_EQ(find_groups(measured(4, {4, remote, topology}, 1.3, 3)), (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
}

TEST(Grouping, DisturbedLinkCountsForLittle) {
  PairTable table = measured(8, kNear, 1.0, 1);
  LinkCosts disturbed = kNear;
  disturbed.bytes_per_second /= 1.5;
  table.set(2, 3, disturbed);
  const AlikeLinks links = summarize(table, all_pairs(8));
  EXPECT_TRUE(links.exceptions.empty());
  EXPECT_EQ(links.costs.bytes_per_second, kNear.bytes_per_second);
}

TEST(Grouping, OfALinkThatIsSlowByItselfIsNoException) {
  PairTable table = measured(6, kNear, 1.0, 1);
  table.set(2, 3, kFar);
  table.set(0, 5, kFar);
  EXPECT_TRUE(summarize(table, all_pairs(6)).exceptions.empty());
}

TEST(Links, OfATopologyAreThoseOfItsGroupsAndPairs) {
  Topology topology = two_switches(4);
  const LinkCosts own{.latency_seconds = 1e-6, .bytes_per_second = 5e6, .message_seconds = 1e-6};
  topology.pairs.push_back({1, 3, own});
  const Links links(4, kFar, topology);
  EXPECT_EQ(links.of(0, 2), kNear);
  EXPECT_EQ(links.of(2, 1), kFar);
  EXPECT_EQ(links.of(3, 1), own);
  EXPECT_EQ(links.groups(), 2);
  EXPECT_EQ(links.slowest().bytes_per_second, 5e6);
  const Links ordered = links.reordered({3, 1, 0, 2});
  EXPECT_EQ(ordered.of(0, 1), own);
  EXPECT_EQ(ordered.of(2, 3), kNear);
  EXPECT_EQ(ordered.group_of(0), 1);
  EXPECT_EQ(links.divided(2).uplink(0), 12.5e6);
}

}  // namespace
}  // namespace weft::comm
