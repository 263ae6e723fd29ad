// Links that differ: what is read off measured ones, orders of hosts, schedules over groups, their simulation and
// choice, and ranks as threads that use them.
#include "weft/comm/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>

#include "tests/comm/host_groups.h"
#include "tests/comm/symbolic_run.h"
#include "weft/base/rng.h"
#include "weft/comm/choose.h"
#include "weft/comm/grouping.h"
#include "weft/comm/local/local_group.h"
#include "weft/comm/orders.h"
#include "weft/comm/schedules/reduce_scatter.h"
#include "weft/comm/schedules/reordered.h"

namespace weft::comm {
namespace {

constexpr LinkCosts kNear{.latency_seconds = 50e-6, .bytes_per_second = 125e6, .message_seconds = 2e-6};
constexpr LinkCosts kFar{.latency_seconds = 80e-6, .bytes_per_second = 25e6, .message_seconds = 2e-6};
constexpr double kSums = 4e9;

/// Hosts in turn: 0, 2, 4... in the first of two groups.
Topology two_switches(int hosts, double uplink = 25e6) {
  Topology topology;
  for (int group = 0; group < 2; ++group) {
    topology.groups.push_back({.hosts = {}, .within = kNear, .uplink_bytes_per_second = uplink});
    for (int host = group; host < hosts; host += 2) topology.groups.back().hosts.push_back(host);
  }
  return topology;
}

Links links_of_two_switches(int hosts) { return {hosts, kFar, two_switches(hosts)}; }

std::vector<std::pair<int, int>> all_pairs(int hosts) {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < hosts; ++a)
    for (int b = a + 1; b < hosts; ++b) pairs.emplace_back(a, b);
  return pairs;
}

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
  constexpr int64_t kElements = 6400;
  const std::vector<Schedule> schedules = hierarchical(8, 2, kElements, 800);
  int64_t out = 0;
  for (size_t member = 0; member < 4; ++member)
    for (const Action& action : schedules[member].actions)
      if (action.kind == ActionKind::send && action.peer >= 4) out += action.end - action.begin;
  EXPECT_EQ(out, kElements);  // 2 (g - 1) / g of them
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

CollectivesOptions over_two_switches(int hosts, std::optional<Algorithm> algorithm = {}) {
  CollectivesOptions options;
  options.costs.between_hosts = kFar;
  options.costs.topology = two_switches(hosts);
  options.algorithm = algorithm;
  return options;
}

float number_of(int rank, int64_t element) { return static_cast<float>((rank + 1) * (element % 7)); }

/// Over hosts in turn on two switches, all kinds of collectives: whole numbers, so that the order of sums is nothing.
void expect_right_over_two_switches(const std::vector<std::string>& group, const CollectivesOptions& options) {
  constexpr int64_t kElements = 30'000;
  std::mutex mutex;
  std::set<std::string> descriptions;
  run_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, options);
    const int size = ranks.size();
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::broadcast, CollectiveKind::reduce}) {
      const int root = size - 1;
      const ReductionSpec spec{"x", DType::f32, Reduction::sum, {kElements}, kind, has_root(kind) ? root : 0};
      const CollectiveId id = collectives.prepare(spec);
      const int64_t whole = has_parts(kind) ? kElements * size : kElements;
      const Operands operands(collectives, DType::f32, {whole}, true);
      auto* const values = static_cast<float*>(operands.tensors[0]);
      for (int64_t i = 0; i < whole; ++i) values[i] = number_of(ranks.rank(), i);
      collectives.start(id, operands.tensors);
      collectives.wait(id);
      const int64_t own = ranks.rank() * kElements;
      if (kind == CollectiveKind::reduce && ranks.rank() != root) continue;
      for (int64_t i = 0; i < whole; ++i) {
        float expected = 0;
        if (kind == CollectiveKind::all_gather)
          expected = number_of(static_cast<int>(i / kElements), i);
        else if (kind == CollectiveKind::broadcast)
          expected = number_of(root, i);
        else
          for (int rank = 0; rank < size; ++rank) expected += number_of(rank, i);
        if (kind == CollectiveKind::reduce_scatter && (i < own || i >= own + kElements)) continue;
        ASSERT_EQ(values[i], expected) << name_of(kind) << " rank " << ranks.rank() << " element " << i;
      }
      const std::lock_guard lock(mutex);
      descriptions.insert(collectives.describe(id));
    }
  });
  // Ranks of hosts with fewer of them say so; how it goes between hosts all say alike.
  const auto says = [&](const char* text) {
    return std::any_of(descriptions.begin(), descriptions.end(),
                       [&](const std::string& one) { return one.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("in 2 groups")) << *descriptions.begin();
  EXPECT_TRUE(options.algorithm || says(", in the order 0 2")) << *descriptions.begin();
}

TEST(CollectivesOverGroups, GiveTheSameAsOverEqualLinks) {
  expect_right_over_two_switches({"a", "b", "c", "d"}, over_two_switches(4));
  expect_right_over_two_switches({"a", "a", "b", "b", "c", "c", "d", "d"}, over_two_switches(4));
  expect_right_over_two_switches({"a", "b", "c", "d", "e"}, over_two_switches(5));
  expect_right_over_two_switches({"a", "b", "c", "d", "e", "f"}, over_two_switches(6));
}

TEST(CollectivesOverGroups, GiveTheSameByEachAlgorithm) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling,
                                    Algorithm::double_binary_tree, Algorithm::direct_exchange, Algorithm::hierarchical})
    expect_right_over_two_switches({"a", "b", "c", "d"}, over_two_switches(4, algorithm));
}

TEST(CollectivesOverGroups, GiveAllRanksTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::mutex mutex;
    std::vector<std::vector<std::byte>> results;
    run_ranks({"a", "b", "c", "d"}, [&](Communicator& ranks) {
      Collectives collectives(ranks, over_two_switches(4));
      const CollectiveId id = collectives.prepare({"x", dtype, Reduction::mean, {70'003}});
      const Operands operands(collectives, dtype, {70'003}, true);
      auto* const bytes = static_cast<std::byte*>(operands.tensors[0]);
      for (int64_t i = 0; i < 70'003; ++i) {
        const float value = std::sin(static_cast<float>(ranks.rank() * 7919 + i));
        if (dtype == DType::f32)
          std::memcpy(bytes + 4 * i, &value, 4);
        else
          std::memcpy(bytes + 2 * i, reinterpret_cast<const char*>(&value) + 2, 2);
      }
      collectives.start(id, operands.tensors);
      collectives.wait(id);
      const std::lock_guard lock(mutex);
      results.emplace_back(bytes, bytes + 70'003 * size_of(dtype));
    });
    for (const auto& result : results) EXPECT_EQ(result, results.front());
  }
}

TEST(CollectivesOverGroups, InTreeOrderKeepTheHostsOrder) {
  run_ranks({"a", "b", "c", "d"}, [&](Communicator& ranks) {
    CollectivesOptions options = over_two_switches(4);
    options.in_tree_order = true;
    Collectives collectives(ranks, options);
    const CollectiveId id = collectives.prepare({"x", DType::f32, Reduction::sum, {100'000}});
    EXPECT_TRUE(collectives.report(id).between.order.empty());
    EXPECT_NE(collectives.report(id).between.algorithm, Algorithm::hierarchical);
  });
}

}  // namespace
}  // namespace weft::comm
