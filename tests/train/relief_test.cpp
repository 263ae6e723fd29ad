#include "weft/train/ranks/relief.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/rng.h"
#include "weft/comm/local/local_group.h"

namespace weft::train {
namespace {

using testing::ElementsAre;

/// Whether the shares change within so many rounds, each alike.
bool change_within(ShareJudge& judge, const std::vector<double>& seconds, int rounds) {
  for (int round = 0; round < rounds; ++round)
    if (judge.judge(seconds)) return true;
  return false;
}

TEST(ShareJudge, ARankThatStaysSlowTakesLess) {
  ShareJudge judge({8, 8});
  EXPECT_FALSE(change_within(judge, {0.1, 0.2}, ShareJudge::kRounds - 1));
  EXPECT_TRUE(judge.judge(std::vector<double>{0.1, 0.2}));
  EXPECT_THAT(judge.shares(), ElementsAre(11, 5));
  EXPECT_FALSE(change_within(judge, {0.1, 0.2}, 20)) << "there is nothing better";
}

TEST(ShareJudge, OneThatRecoversTakesItsShareAgain) {
  ShareJudge judge({8, 8});
  EXPECT_TRUE(change_within(judge, {0.1, 0.4}, ShareJudge::kRounds));
  EXPECT_THAT(judge.shares(), ElementsAre(13, 3));
  EXPECT_TRUE(change_within(judge, {0.1, 0.1}, ShareJudge::kRounds));
  EXPECT_THAT(judge.shares(), ElementsAre(8, 8));
}

TEST(ShareJudge, NoiseChangesNothing) {
  for (const std::vector<int64_t>& shares : {std::vector<int64_t>{8, 8}, {16, 16}, {64, 64}, {16, 16, 16, 16}}) {
    ShareJudge judge(shares);
    RandomStream random(3, 0);
    for (int round = 0; round < 500; ++round) {
      std::vector<double> seconds(shares.size());
      for (double& one : seconds) one = 0.1 * (1 + 0.03 * random.normal());
      EXPECT_FALSE(judge.judge(seconds)) << round;
    }
  }
}

TEST(ShareJudge, WhatPassesChangesNothing) {
  ShareJudge judge({8, 8});
  for (int round = 0; round < 30; ++round)  // slow in two of three rounds
    EXPECT_FALSE(judge.judge(std::vector<double>{0.1, round % 3 == 0 ? 0.1 : 0.3})) << round;
}

TEST(ShareJudge, ARoundWithoutATimeCountsForNothing) {
  ShareJudge judge({8, 8});
  for (int round = 0; round < 10; ++round) EXPECT_FALSE(judge.judge(std::vector<double>{0.1, 0.0}));
}

TEST(ShareJudge, RoundsOfOtherSharesDoNotCount) {
  ShareJudge judge({8, 8});
  EXPECT_FALSE(change_within(judge, {0.1, 0.2}, ShareJudge::kRounds - 1));
  judge.begin_anew();
  EXPECT_FALSE(change_within(judge, {0.1, 0.2}, ShareJudge::kRounds - 1));
}

TEST(ShareChange, IsSaidInOneLine) {
  comm::LocalGroup group({"a", "a", "b"});
  EXPECT_EQ(
      describe({.from_step = 119, .before = {5, 5, 6}, .after = {7, 7, 2}}, group.communicator(0)),
      "from step 120 on, by their speed, rank 0 on host 'a' takes 7 of 16 grains of each batch (before 5), rank 1 "
      "on host 'a' takes 7 (before 5), rank 2 on host 'b' takes 2 (before 6)");
}

}  // namespace
}  // namespace weft::train
