#include "weft/base/wait_policy.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

/// Whether others want the cores at the end of so many intervals of this use.
bool judged(ContentionJudge& judge, int intervals, const CoreUse& use) {
  bool is_contended = false;
  for (int interval = 0; interval < intervals; ++interval) is_contended = judge.judge(use);
  return is_contended;
}

constexpr CoreUse kAlone{.others = 0.03, .idle = 0.02, .all = 2};
constexpr CoreUse kShared{.others = 0.7, .idle = 0.01, .all = 2};

TEST(Contention, WhatTheSystemItselfTakesIsNone) {
  ContentionJudge judge;
  EXPECT_FALSE(judged(judge, 1000, kAlone));
}

TEST(Contention, OthersThatComputeWhileNoCoreIsIdleWantTheCores) {
  ContentionJudge judge;
  EXPECT_TRUE(judged(judge, 1, kShared)) << "after the first interval";
}

TEST(Contention, OthersOnCoresThatWouldBeIdleWantNothing) {
  ContentionJudge judge;
  EXPECT_FALSE(judged(judge, 100, {.others = 20, .idle = 12, .all = 64}));
}

TEST(Contention, EndsAfterASecondWithoutOthers) {
  ContentionJudge judge;
  ASSERT_TRUE(judged(judge, 10, kShared));
  EXPECT_TRUE(judged(judge, 9, kAlone));
  EXPECT_FALSE(judged(judge, 1, kAlone));
}

TEST(SpinWatch, MayComeAndGo) {
  for (int count = 0; count < 3; ++count) {
    const SpinWatch watch;
  }
}

}  // namespace
}  // namespace weft
