#include "weft/train/ranks/slow_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "weft/comm/local/local_group.h"

namespace weft::train {
namespace {

/// Of ranks that all take as long as the slowest does, or as long as is said.
std::vector<OwnSeconds> steps(const std::vector<double>& seconds, double whole = 0) {
  whole = std::max(whole, *std::max_element(seconds.begin(), seconds.end()));
  std::vector<OwnSeconds> round;
  for (const double step : seconds) round.push_back({.step = step, .whole = whole});
  return round;
}

/// The rounds, each so many times, of which anything is said.
std::vector<RankPace> judged(SlowRanks& ranks, const std::vector<double>& seconds, int rounds, double whole = 0) {
  std::vector<RankPace> news;
  for (int round = 0; round < rounds; ++round)
    for (const RankPace& pace : ranks.judge(steps(seconds, whole))) news.push_back(pace);
  return news;
}

TEST(SlowRanks, OneThatStaysSlowIsNamedOnce) {
  SlowRanks ranks(4);
  EXPECT_TRUE(judged(ranks, {0.2, 0.2, 0.2, 0.36}, SlowRanks::kRounds - 1).empty());
  const std::vector<RankPace> news = judged(ranks, {0.2, 0.22, 0.2, 0.36}, 10);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].rank, 3);
  EXPECT_TRUE(news[0].is_slow);
  EXPECT_DOUBLE_EQ(news[0].others_step, 0.2);
  EXPECT_NEAR(news[0].factor(), 1.8, 1e-12);
}

TEST(SlowRanks, OneAloneIsComparedWithNobody) {
  SlowRanks alone(1);
  EXPECT_TRUE(judged(alone, {0.2}, 10).empty());
}

TEST(SlowRanks, NothingIsSaidOfWhatPassesOrMatters) {
  SlowRanks ranks(2);
  for (int round = 0; round < 20; ++round)  // two of three rounds
    EXPECT_TRUE(ranks.judge(steps({0.2, round % 3 == 0 ? 0.2 : 0.4})).empty());
  EXPECT_TRUE(judged(ranks, {0.2, 0.25}, 20).empty());                // a quarter more
  EXPECT_TRUE(judged(ranks, {0.02, 0.06}, 20, /*whole=*/1).empty());  // 4 % of the time
}

TEST(SlowRanks, TheLengthOfAStepIsNothing) {
  for (const double step : {20e-6, 0.02, 20.0}) {
    SlowRanks ranks(2);
    EXPECT_EQ(judged(ranks, {step, 4 * step}, 5).size(), 1u) << step;
    EXPECT_TRUE(judged(ranks, {step, 1.2 * step}, 5).empty()) << step;
  }
}

TEST(SlowRanks, OfTwoTheSlowerIsNamed) {
  SlowRanks ranks(2);
  const std::vector<RankPace> news = judged(ranks, {0.5, 0.2}, 5);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].rank, 0);
}

TEST(SlowRanks, ItIsSaidAgainWhereItChanges) {
  SlowRanks ranks(3);
  EXPECT_EQ(judged(ranks, {0.2, 0.4, 0.2}, 5).size(), 1u);
  EXPECT_TRUE(judged(ranks, {0.2, 0.5, 0.2}, 5).empty());
  const std::vector<RankPace> worse = judged(ranks, {0.2, 0.8, 0.2}, 5);
  ASSERT_EQ(worse.size(), 1u);
  EXPECT_NEAR(worse[0].factor(), 4, 1e-12);
  const std::vector<RankPace> better = judged(ranks, {0.2, 0.21, 0.2}, 5);
  ASSERT_EQ(better.size(), 1u);
  EXPECT_FALSE(better[0].is_slow);
  EXPECT_EQ(judged(ranks, {0.2, 0.4, 0.2}, 5).size(), 1u);
}

TEST(SlowRanks, TheyAreDescribed) {
  comm::LocalGroup group({"a", "a", "b", "b"});
  const comm::Communicator& ranks = group.communicator(0);
  RankPace pace{.rank = 3, .is_slow = true, .own = {.step = 0.42, .input_wait = 0}, .others_step = 0.23};
  EXPECT_EQ(
      describe(pace, ranks),
      "rank 3 on host 'b' takes 1.8 times as long per step as the others (0.42 s, 0.23 s), which wait for it; see "
      "what else runs there, and whether its cores are slower or too hot");
  pace.own.input_wait = 0.15;
  EXPECT_THAT(describe(pace, ranks), ::testing::HasSubstr("; 0.15 s of that it waits for its batches: see its disk"));
  pace = {.rank = 1, .is_slow = false, .own = {.step = 0.021, .input_wait = 0}, .others_step = 0.02};
  EXPECT_EQ(describe(pace, ranks), "rank 1 on host 'a' is as fast as the others again (21.0 ms, 20.0 ms)");
  pace = {.rank = 1, .is_slow = false, .own = {.step = 0.00042, .input_wait = 0}, .others_step = 0.0004};
  EXPECT_THAT(describe(pace, ranks), ::testing::HasSubstr("(420 us, 400 us)"));
}

}  // namespace
}  // namespace weft::train
