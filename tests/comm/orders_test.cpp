// Orders of hosts, schedules over them and over groups, their simulation and choice.
#include "weft/comm/links/orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/comm/host_groups.h"
#include "tests/comm/symbolic_run.h"
#include "tests/comm/two_switches.h"
#include "weft/base/rng.h"
#include "weft/comm/links/choose.h"
#include "weft/comm/schedules/reduce_scatter.h"
#include "weft/comm/schedules/reordered.h"

namespace weft::comm {
namespace {

constexpr double kSums = 4e9;

std::vector<int> shuffled(int size, uint64_t seed) {
  std::vector<int> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[(seed = mix(seed, i)) % (i + 1)]);
  return order;
}

class Reordered : public testing::TestWithParam<std::tuple<Algorithm, int>> {};
INSTANTIATE_TEST_SUITE_P(AlgorithmsAndSizes, Reordered,
                         testing::Combine(testing::ValuesIn(all_gather_algorithms()),
                                          testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9)));

/// Members of the run are places; the host at place p has number order[p].
TEST_P(Reordered, GathersGiveEveryHostThePieceOfEach) {
  const auto [algorithm, size] = GetParam();
  for (const int64_t elements : {0, 1, 5})
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const std::vector<int> order = shuffled(size, seed);
      const std::vector<int64_t> begins = uneven_pieces(size, elements);
      std::vector<Schedule> schedules;
      for (int place = 0; place < size; ++place)
        schedules.push_back(make_gather_schedule(algorithm, place, begins, 0, order));
      for (const Schedule& schedule : schedules) {
        EXPECT_EQ(find_conflict(schedule), "");
        EXPECT_EQ(schedule.slots, schedules[0].slots);
        for (const Action& action : schedule.actions) EXPECT_LT(action.slot, schedule.slots);
      }
      SymbolicRun run(schedules, seed);
      ASSERT_EQ(run.run(), "");
      for (const Counts& buffer : run.buffers())
        for (int host = 0; host < size; ++host)
          for (auto i = static_cast<size_t>(begins[static_cast<size_t>(host)]);
               i < static_cast<size_t>(begins[static_cast<size_t>(host) + 1]); ++i)
            ASSERT_EQ(buffer[i], (std::map<int, int>{{place_of(order, host), 1}})) << name_of(algorithm);
    }
}

TEST_P(Reordered, ScattersGiveEveryHostTheSumOfItsPiece) {
  const auto [algorithm, size] = GetParam();
  std::map<int, int> once;
  for (int member = 0; member < size; ++member) once[member] = 1;
  for (const int64_t elements : {1, 5})
    for (const int64_t chunk : {0, 2})
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        const std::vector<int> order = shuffled(size, seed);
        const std::vector<int64_t> begins = uneven_pieces(size, elements);
        std::vector<Schedule> schedules;
        for (int place = 0; place < size; ++place)
          schedules.push_back(make_reduce_scatter_schedule(algorithm, place, begins, chunk, order));
        for (const Schedule& schedule : schedules) EXPECT_EQ(find_conflict(schedule), "");
        SymbolicRun run(schedules, seed);
        ASSERT_EQ(run.run(), "");
        for (int place = 0; place < size; ++place) {
          const auto host = static_cast<size_t>(order[static_cast<size_t>(place)]);
          for (auto i = static_cast<size_t>(begins[host]); i < static_cast<size_t>(begins[host + 1]); ++i)
            ASSERT_EQ(run.buffers()[static_cast<size_t>(place)][i], once) << name_of(algorithm);
        }
      }
}

std::vector<Schedule> hierarchical(int size, int groups, int64_t elements, int64_t chunk) {
  std::vector<Schedule> schedules;
  for (int member = 0; member < size; ++member)
    schedules.push_back(make_schedule(Algorithm::hierarchical, member, size, elements, chunk, groups));
  return schedules;
}

const std::vector<std::pair<int, int>> kSizesAndGroups = {{1, 1}, {2, 1}, {2, 2}, {3, 3}, {4, 2}, {6, 2},
                                                          {6, 3}, {8, 2}, {8, 4}, {9, 3}, {9, 1}};

TEST(Hierarchical, GivesEveryMemberEveryNumberOnce) {
  for (const auto& [size, groups] : kSizesAndGroups)
    for (const int64_t elements : {0, 1, 2, 5, 37, 64})
      for (const int64_t chunk : {1, 7, 1000})
        for (uint64_t seed = 1; seed <= 3; ++seed) {
          std::map<int, int> once;
          for (int member = 0; member < size; ++member) once[member] = 1;
          const std::vector<Schedule> schedules = hierarchical(size, groups, elements, chunk);
          for (const Schedule& schedule : schedules) {
            ASSERT_EQ(find_conflict(schedule), "") << size << " in " << groups;
            for (const Action& action : schedule.actions) ASSERT_LT(action.slot, schedule.slots);
          }
          SymbolicRun run(schedules, seed);
          ASSERT_EQ(run.run(), "") << size << " in " << groups << ", " << elements << " by " << chunk;
          for (const Counts& buffer : run.buffers())
            for (const auto& counts : buffer) ASSERT_EQ(counts, once) << size << " in " << groups;
        }
}

TEST(Hierarchical, SendsTheLeastPossibleOutOfAGroup) {
  constexpr int64_t kOrdered = 6400;
  const std::vector<Schedule> schedules = hierarchical(8, 2, kOrdered, 800);
  int64_t out = 0;
  for (size_t member = 0; member < 4; ++member)
    for (const Action& action : schedules[member].actions)
      if (action.kind == ActionKind::send && action.peer >= 4) out += action.end - action.begin;
  EXPECT_EQ(out, kOrdered);  // 2 (g - 1) / g of them
}

std::vector<Schedule> rings(int size, int64_t elements, int64_t chunk) {
  std::vector<Schedule> schedules;
  for (int member = 0; member < size; ++member)
    schedules.push_back(make_schedule(Algorithm::ring, member, size, elements, chunk));
  return schedules;
}

TEST(Simulation, WithOneGroupIsThatOfOneLinkToTheLastBit) {
  for (const int size : {2, 3, 4, 7, 8}) {
    Topology one;
    one.groups.push_back({.hosts = shuffled(size, 1), .within = kNear, .uplink_bytes_per_second = 1.0});
    const Links grouped(size, kFar, one);
    Topology by_pairs;
    for (const auto& [a, b] : all_pairs(size)) by_pairs.pairs.push_back({a, b, kNear});
    for (const Algorithm algorithm : all_algorithms()) {
      std::vector<Schedule> schedules;
      for (int member = 0; member < size; ++member)
        schedules.push_back(make_schedule(algorithm, member, size, 100'000, 7'000));
      const double expected = simulate(schedules, kNear, kSums, 4);
      EXPECT_EQ(simulate(schedules, grouped, kSums, 4), expected) << name_of(algorithm);
      EXPECT_EQ(simulate(schedules, {size, kFar, by_pairs}, kSums, 4), expected) << name_of(algorithm);
      EXPECT_EQ(busiest_seconds(schedules, grouped, 4), busiest_seconds(schedules, kNear, 4)) << name_of(algorithm);
    }
  }
}

TEST(Simulation, OfWhatPassesAnUplinkIsOneAfterTheOther) {
  // Each of two hosts sends a megabyte to one of the other group, over links that could take both at once.
  std::vector<Schedule> schedules(4);
  const auto send = [&](int from, int to) {
    for (Schedule& schedule : schedules) schedule.elements = 250'000, schedule.slots = 1;
    add_action(schedules[static_cast<size_t>(from)], ActionKind::send, to, 0, 0, 250'000);
    add_action(schedules[static_cast<size_t>(to)], ActionKind::receive_copy, from, 0, 0, 250'000);
  };
  send(0, 1);
  send(2, 3);
  const LinkCosts far{.latency_seconds = 1e-3, .bytes_per_second = 100e6, .message_seconds = 0};
  EXPECT_NEAR(simulate(schedules, {4, far, two_switches(4, kUnlimited)}, kSums, 4), 10e-3 + 1e-3, 1e-9);
  EXPECT_NEAR(simulate(schedules, {4, far, two_switches(4, 100e6)}, kSums, 4), 20e-3 + 1e-3, 1e-9);
  EXPECT_NEAR(busiest_seconds(schedules, {4, far, two_switches(4, 100e6)}, 4), 20e-3, 1e-9);
  // There and back at once: a direction each.
  send(1, 0);
  EXPECT_NEAR(simulate(schedules, {4, far, two_switches(4, 100e6)}, kSums, 4), 20e-3 + 1e-3, 1e-9);
}

TEST(Simulation, OfARingOverTwoSwitchesIsFasterWithTheirHostsTogether) {
  const Links links = links_of_two_switches(4);
  const auto schedules = rings(4, 1 << 20, 16 << 10);
  const double in_turn = simulate(schedules, links, kSums, 4);
  const double together = simulate(schedules, links.reordered({0, 2, 1, 3}), kSums, 4);
  // 2 (n - 1) / n of the elements over each link; in turn two links share an uplink.
  const double megabytes = 4.0 * (1 << 20);
  EXPECT_NEAR(in_turn, 2 * 1.5 * megabytes / 25e6, 0.1 * in_turn);
  EXPECT_NEAR(together, 1.5 * megabytes / 25e6, 0.1 * together);
}

TEST(Orders, AreTheirOwnAloneWhereLinksAreEqual) {
  EXPECT_EQ(orders_of(kNear, 6), (std::vector<std::vector<int>>{{}}));
  EXPECT_EQ(choose_algorithm(6, 1 << 20, 4, kNear, 1e10).order, std::vector<int>{});
}

TEST(Orders, AreOfAllHostsEachAndHaveGroupsTogetherAndInTurn) {
  const auto orders = orders_of(links_of_two_switches(6), 6);
  EXPECT_TRUE(orders.front().empty());
  const auto has = [&](const std::vector<int>& order) {
    return std::find(orders.begin(), orders.end(), order) != orders.end();
  };
  EXPECT_TRUE(has({0, 2, 4, 1, 3, 5}));
  for (std::vector<int> order : orders) {
    if (order.empty()) continue;
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  }
  const auto of_root = orders_of(links_of_two_switches(6), 6, 3);
  EXPECT_EQ(of_root[1], (std::vector<int>{3, 5, 1, 0, 2, 4}));
}

TEST(Orders, OfTheNearestFollowTheLinks) {
  // 0-2, 2-1 and 1-3 are fast.
  Topology chain;
  for (const auto& [a, b] : std::vector<std::pair<int, int>>{{0, 2}, {1, 2}, {1, 3}})
    chain.pairs.push_back({a, b, kNear});
  const auto orders = orders_of({4, kFar, chain}, 4);
  EXPECT_TRUE(std::find(orders.begin(), orders.end(), std::vector<int>{0, 2, 1, 3}) != orders.end());
}

TEST(Choice, OverTwoSwitchesKeepsWhatTravelsInAGroup) {
  for (const int hosts : {4, 8}) {
    const Links links = links_of_two_switches(hosts);
    const Choice choice = choose_algorithm(hosts, 1 << 20, 4, links, 1e10);
    const double bytes = 4.0 * (1 << 20);
    // No less than V has to leave each group.
    EXPECT_GE(choice.seconds, bytes / 25e6);
    EXPECT_LT(choice.seconds, 1.35 * bytes / 25e6) << name_of(choice.algorithm);
    EXPECT_FALSE(choice.order.empty());
    EXPECT_EQ(choice.algorithm, Algorithm::hierarchical);
    const Choice ring = choose_algorithm(hosts, 1 << 20, 4, links, 1e10, Algorithm::ring);
    EXPECT_FALSE(ring.order.empty());
    EXPECT_LT(ring.seconds, 0.6 * choose_algorithm(hosts, 1 << 20, 4, links, 1e10, Algorithm::ring, 1, 0,
                                                   /*may_reorder=*/false)
                                      .seconds);
  }
}

TEST(Choice, InTheirOwnOrderIsAlsoOfHostsThatStandTogether) {
  Topology topology = two_switches(4);
  topology.groups[0].hosts = {0, 1};
  topology.groups[1].hosts = {2, 3};
  const Choice choice = choose_algorithm(4, 1 << 20, 4, {4, kFar, topology}, 1e10);
  EXPECT_TRUE(choice.order.empty());
  EXPECT_EQ(choice.algorithm, Algorithm::hierarchical);
}

TEST(Choice, OfAChainBeginsWithTheRootsGroup) {
  const Choice choice = choose_broadcast(4, 3, 1 << 20, 4, links_of_two_switches(4), Algorithm::chain);
  EXPECT_EQ(choice.order, (std::vector<int>{3, 1, 0, 2}));
  EXPECT_LT(choice.seconds, 1.2 * 4.0 * (1 << 20) / 25e6);
}

TEST(Choice, OfGathersAndScattersIsNoWorseThanInTheirOwnOrder) {
  const Links links = links_of_two_switches(6);
  std::vector<int64_t> begins;
  for (int host = 0; host <= 6; ++host) begins.push_back(20'000 * host);
  for (const Algorithm algorithm : all_gather_algorithms()) {
    std::vector<Schedule> own;
    for (int member = 0; member < 6; ++member) own.push_back(make_gather_schedule(algorithm, member, begins));
    EXPECT_LE(choose_gather(begins, 4, links, algorithm).seconds, simulate(own, links, 1, 4)) << name_of(algorithm);
  }
  EXPECT_FALSE(choose_gather(begins, 4, links, Algorithm::ring).order.empty());
  EXPECT_FALSE(choose_reduce_scatter(begins, 4, links, 1e10, Algorithm::ring).order.empty());
}

}  // namespace
}  // namespace weft::comm
