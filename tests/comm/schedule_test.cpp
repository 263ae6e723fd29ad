// Schedules, checked without running them: whatever the order in which messages come, every member ends with every
// member's number exactly once, and nothing is overwritten before it was sent.
#include "weft/comm/schedules/schedule.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "tests/comm/symbolic_run.h"
#include "weft/base/rng.h"
#include "weft/comm/links/choose.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {
namespace {

std::vector<Schedule> schedules_of(Algorithm algorithm, int size, int64_t elements, int64_t chunk) {
  std::vector<Schedule> schedules;
  for (int member = 0; member < size; ++member)
    schedules.push_back(make_schedule(algorithm, member, size, elements, chunk));
  return schedules;
}

class Schedules : public testing::TestWithParam<std::tuple<Algorithm, int>> {};
INSTANTIATE_TEST_SUITE_P(AlgorithmsAndSizes, Schedules,
                         testing::Combine(testing::ValuesIn(all_algorithms()),
                                          testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9)));

TEST_P(Schedules, GiveEveryMemberEveryNumberOnce) {
  const auto [algorithm, size] = GetParam();
  std::map<int, int> once;
  for (int member = 0; member < size; ++member) once[member] = 1;
  for (const int64_t elements : {0, 1, 2, 5, 8, 37, 64})
    for (const int64_t chunk : {1, 3, 1000})
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        SymbolicRun run(schedules_of(algorithm, size, elements, chunk), seed);
        ASSERT_EQ(run.run(), "") << elements << " elements in chunks of " << chunk;
        for (const Counts& buffer : run.buffers())
          for (const auto& counts : buffer) ASSERT_EQ(counts, once) << elements << " elements in chunks of " << chunk;
      }
}

TEST_P(Schedules, ActionsWaitForEarlierOnesOnly) {
  const auto [algorithm, size] = GetParam();
  for (const Schedule& schedule : schedules_of(algorithm, size, 50, 4))
    for (size_t a = 0; a < schedule.actions.size(); ++a) {
      EXPECT_EQ(schedule.slots, make_schedule(algorithm, 0, size, 50, 4).slots);
      EXPECT_LT(schedule.actions[a].slot, schedule.slots);
      for (const int32_t earlier : schedule.actions[a].after) EXPECT_LT(earlier, static_cast<int32_t>(a));
    }
}

/// A send that is still under way must not be overwritten: whatever changes its elements later waits for it.
TEST_P(Schedules, NothingIsOverwrittenBeforeItWasSent) {
  const auto [algorithm, size] = GetParam();
  for (const Schedule& schedule : schedules_of(algorithm, size, 41, 3)) {
    const auto& actions = schedule.actions;
    std::vector<std::set<size_t>> before(actions.size());  // all that an action waits for, also through others
    for (size_t a = 0; a < actions.size(); ++a)
      for (const int32_t earlier : actions[a].after) {
        const auto e = static_cast<size_t>(earlier);
        before[a].insert(e);
        before[a].insert(before[e].begin(), before[e].end());
      }
    for (size_t w = 0; w < actions.size(); ++w) {
      if (actions[w].kind == ActionKind::send) continue;
      for (size_t s = 0; s < actions.size(); ++s) {
        const bool meet = actions[s].begin < actions[w].end && actions[w].begin < actions[s].end;
        if (s == w || !meet) continue;
        EXPECT_TRUE(before[w].contains(s) || before[s].contains(w))
            << name_of(algorithm) << " of " << size << ": actions " << s << " and " << w << " touch the same elements";
      }
    }
  }
}

int64_t sent_elements(const Schedule& schedule) {
  int64_t sent = 0;
  for (const Action& action : schedule.actions)
    if (action.kind == ActionKind::send) sent += action.end - action.begin;
  return sent;
}

TEST(Schedule, PartsWaitForAllPartsOfWhatTheWholeWaitedFor) {
  Schedule whole{.elements = 25, .slots = 2, .actions = {}};
  const int32_t received = add_action(whole, ActionKind::receive_copy, 1, 0, 0, 10);
  add_action(whole, ActionKind::send, 1, 1, 5, 25, {received});
  whole.actions.push_back({.kind = ActionKind::send, .peer = 2, .slot = 0, .begin = 0, .end = 0, .after = {}});
  const Schedule parts = in_parts(whole, 8);
  EXPECT_EQ(parts.slots, 2);
  ASSERT_EQ(parts.actions.size(), 6u);
  const auto is = [&](size_t a, int32_t slot, int64_t begin, int64_t end, const std::vector<int32_t>& after) {
    const Action& action = parts.actions[a];
    EXPECT_EQ(std::tuple(action.slot, action.begin, action.end), std::tuple(slot, begin, end)) << a;
    EXPECT_EQ(action.after, after) << a;
  };
  is(0, 0, 0, 8, {});
  is(1, 0, 8, 10, {});
  is(2, 1, 5, 13, {0, 1});
  is(3, 1, 13, 21, {0, 1});
  is(4, 1, 21, 25, {0, 1});
  is(5, 0, 0, 0, {});
}

TEST(Traffic, OfRingHalvingAndDirectExchangeIsTheLeastPossible) {
  for (const int size : {2, 4, 8})
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::direct_exchange})
      for (const Schedule& schedule : schedules_of(algorithm, size, 6400, 100))
        EXPECT_EQ(sent_elements(schedule), 2 * (size - 1) * 6400 / size) << name_of(algorithm);
}

TEST(Traffic, OfTheDoubleTreeIsAboutTwiceTheElementsForAnyMember) {
  for (const int size : {4, 8, 9, 16})
    for (const Schedule& schedule : schedules_of(Algorithm::double_binary_tree, size, 6400, 100))
      EXPECT_LE(sent_elements(schedule), 2 * 6400 + 6400 / 2) << size;
}

constexpr LinkCosts kLink{.latency_seconds = 1e-3, .bytes_per_second = 1e6, .message_seconds = 0};
constexpr double kFree = 1e30;  // sums per second

TEST(Simulation, OfTwoMembersIsTheFormula) {
  // 2 (a + b V / 2): each sends half, gets the other half, sends the sum of its half.
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::direct_exchange})
    EXPECT_NEAR(simulate(schedules_of(algorithm, 2, 1000, 1000), kLink, kFree, 4), 2 * (1e-3 + 2e-3), 1e-9)
        << name_of(algorithm);
}

TEST(Simulation, OfARingIsTheFormula) {
  for (const int size : {3, 4, 8}) {
    const double steps = 2.0 * (size - 1);
    EXPECT_NEAR(simulate(schedules_of(Algorithm::ring, size, size * 1000, 1000), kLink, kFree, 4),
                steps * (1e-3 + 4e-3), 1e-9);
  }
}

TEST(Simulation, CountsSums) {
  const auto schedules = schedules_of(Algorithm::ring, 2, 1000, 1000);
  EXPECT_NEAR(simulate(schedules, kLink, 1e6, 4) - simulate(schedules, kLink, kFree, 4), 500 / 1e6, 1e-9);
}

TEST(Simulation, ChunksHideTheLatencyOfARing) {
  const auto seconds = [](int64_t chunk) {
    return simulate(schedules_of(Algorithm::ring, 4, 400'000, chunk),
                    LinkCosts{.latency_seconds = 20e-3, .bytes_per_second = 1e7, .message_seconds = 0}, 1e7, 4);
  };
  EXPECT_LT(seconds(25'000), 0.9 * seconds(100'000));
}

TEST(Choice, IsOfFewMessagesForSmallAndOfLittleTrafficForLargeTensors) {
  const LinkCosts link{.latency_seconds = 50e-6, .bytes_per_second = 1e9, .message_seconds = 1e-6};
  const Choice small = choose_algorithm(8, 64, 4, link, 1e10);
  EXPECT_LT(small.seconds, 8 * 50e-6);  // a ring would take 14 latencies
  const Choice large = choose_algorithm(8, 1 << 24, 4, link, 1e10);
  EXPECT_LT(large.seconds, 1.15 * 2 * 7 / 8.0 * 4 * (1 << 24) / 1e9);
  EXPECT_NE(large.algorithm, Algorithm::double_binary_tree);
}

TEST(Choice, BetweenTwoHostsWaitsOnceBehindOtherTensors) {
  const LinkCosts link{.latency_seconds = 50e-6, .bytes_per_second = 1e8, .message_seconds = 1e-6};
  EXPECT_EQ(choose_algorithm(2, 1 << 16, 4, link, 1e10, std::nullopt, 1, 10e-3).algorithm,
            Algorithm::recursive_doubling);
}

TEST(Choice, BehindOtherTensorsTakesNoMoreOfTheLinkThanItMust) {
  const LinkCosts link{.latency_seconds = 50e-6, .bytes_per_second = 1e8, .message_seconds = 1e-6};
  const int64_t elements = 1 << 20;
  const Choice choice = choose_algorithm(8, elements, 4, link, 1e10, std::nullopt, 1, 10e-3);
  std::vector<Schedule> schedules;
  for (int member = 0; member < 8; ++member)
    schedules.push_back(make_schedule(choice.algorithm, member, 8, elements, std::max<int64_t>(choice.chunk, 1)));
  // By doubling there would be three waits, but the bytes of three tensors.
  EXPECT_LT(busiest_seconds(schedules, link, 4), 1.06 * 2 * 7 / 8.0 * 4 * static_cast<double>(elements) / 1e8);
}

TEST(Simulation, CountsMessages) {
  const auto schedules = schedules_of(Algorithm::ring, 2, 1000, 100);  // five messages there, and five with the sums
  LinkCosts link = kLink;
  link.message_seconds = 1e-3;
  // 400 bytes take 0.4 ms, but no message less than 1 ms.
  EXPECT_NEAR(simulate(schedules, link, kFree, 4) - simulate(schedules, kLink, kFree, 4), 10 * 0.6e-3, 1e-9);
}

TEST(Choice, OfDoublingIsForSumsThatTravelInF32) {
  EXPECT_EQ(choose_algorithm(4, 16, 4, kLink, 1e9).algorithm, Algorithm::recursive_doubling);
  EXPECT_NE(choose_algorithm(4, 16, 2, kLink, 1e9).algorithm, Algorithm::recursive_doubling);
  EXPECT_NE(choose_algorithm(4, 16, 2, kLink, 1e9, Algorithm::recursive_doubling).algorithm,
            Algorithm::recursive_doubling);
}

TEST(Choice, TakesTheAlgorithmThatIsAskedFor) {
  for (const Algorithm algorithm : all_algorithms())
    EXPECT_EQ(choose_algorithm(4, 1000, 4, kLink, 1e9, algorithm).algorithm, algorithm);
}

TEST(NativeCosts, AreBetweenThoseOfTheSizesThatWereMeasured) {
  const NativeCosts costs{.seconds = {10e-6, 20e-6, 60e-6}, .own_seconds = {20e-6, 20e-6, 20e-6}};  // of 1, 4, 16 KB
  EXPECT_DOUBLE_EQ(costs.share_of(4), 0.5);
  EXPECT_DOUBLE_EQ(costs.share_of(1024), 0.5);
  EXPECT_DOUBLE_EQ(costs.share_of(1024 + 1536), 0.75);
  EXPECT_DOUBLE_EQ(costs.share_of(16384), 3);
  EXPECT_EQ(costs.share_of(16385), std::numeric_limits<double>::infinity());
  EXPECT_EQ(NativeCosts{}.share_of(4), std::numeric_limits<double>::infinity());
}

TEST(Choice, TakesFewerWaitsAmongWhatIsPredictedToCostTheSame) {
  // Two hosts send each other all of it once, or half of it twice: the link's time is the same.
  EXPECT_EQ(choose_algorithm(2, 1 << 17, 4, LinkCosts{20e-6, 120e6, 3e-6}, 8e9).algorithm,
            Algorithm::recursive_doubling);
}

}  // namespace
}  // namespace weft::comm
