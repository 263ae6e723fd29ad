#include "weft/predict/curves.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/rng.h"

namespace weft::predict {
namespace {

Curve rising(double reaches_at) {  // 0.9
  Curve curve;
  for (int epoch = 1; epoch <= 20; ++epoch) {
    curve.shares.push_back(epoch / 20.0);
    curve.values.push_back(0.9 * std::min(1.05, epoch / 20.0 / reaches_at));
  }
  return curve;
}

const Target kTarget{"test_accuracy", 0.9, true};
const Interval kRun = interval_of(1000, 0.02);

TEST(Curves, AValueIsReachedAtAnEvaluation) {
  const Curve curve{{0.1, 0.2, 0.3}, {0.5, 0.7, 0.95}};
  EXPECT_EQ(*share_reached(curve, 0.9, true), 0.3);
  EXPECT_EQ(*share_reached(curve, 0.7, true), 0.2);
  EXPECT_FALSE(share_reached(curve, 0.96, true));
  EXPECT_EQ(*share_reached({{0.5, 1}, {2, 1}}, 1.5, false), 1) << "losses fall";
}

TEST(Curves, RunsThatAgreeByChanceDoNotMakeTheRangeNarrow) {
  const auto found = estimate_time({rising(0.5), rising(0.5), rising(0.5), rising(0.5)}, kTarget, kRun);
  EXPECT_TRUE(found->share.holds(0.55));
  EXPECT_TRUE(found->share.holds(0.46));
}

TEST(Curves, RunsOfTheSameRecipeTellWhenItIsReached) {
  const auto found = estimate_time({rising(0.52), rising(0.48), rising(0.5), rising(0.51)}, kTarget, kRun);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reached, 4);
  EXPECT_NEAR(found->seconds.expected, 520, 26);
  EXPECT_LT(found->seconds.high / found->seconds.low, 1.6);
  EXPECT_TRUE(found->seconds.holds(505));
}

TEST(Curves, OneRunTellsLessThanFour) {
  const auto one = estimate_time({rising(0.5)}, kTarget, kRun);
  const auto four = estimate_time({rising(0.52), rising(0.48), rising(0.5), rising(0.51)}, kTarget, kRun);
  EXPECT_GT(one->share.high / one->share.low, four->share.high / four->share.low);
}

TEST(Curves, RunsThatDidNotReachItAreCounted) {
  const auto found = estimate_time({rising(0.5), rising(1.2)}, kTarget, kRun);
  EXPECT_EQ(found->runs, 2);
  EXPECT_EQ(found->reached, 1);
  EXPECT_FALSE(estimate_time({}, kTarget, kRun)) << "of nothing nothing is said";
  EXPECT_EQ(estimate_time({rising(1.2)}, kTarget, kRun)->seconds.expected, 0);
}

TEST(Curves, AnUnlikeRecipeWidensTheRange) {
  Curve unlike = rising(0.5);
  unlike.likeness = 0.4;
  const auto alike = estimate_time({rising(0.5)}, kTarget, kRun), other = estimate_time({unlike}, kTarget, kRun);
  EXPECT_GT(other->share.high, alike->share.high);
}

TEST(Curves, APaceIsThatUntilTheValueOverThatOfATenth) {
  const Curve curve{{0.05, 0.2, 0.5, 1}, {0.1, 0.5, 0.9, 0.9}, {5, 20, 65, 140}};
  EXPECT_NEAR(*pace_after_a_tenth(curve, 0.5), 1.3, 1e-12) << "130 s per run until a half, 100 s per run until a tenth";
  EXPECT_NEAR(*pace_after_a_tenth(curve, 0.2), 1, 1e-12);
  EXPECT_FALSE(pace_after_a_tenth(curve, 0.05)) << "before a tenth";
  EXPECT_FALSE(pace_after_a_tenth(rising(0.5), 0.5)) << "no seconds";
}

TEST(Curves, RunsTellHowThePaceChanges) {
  const auto with_pace = [](double later) {
    Curve curve = rising(0.5);
    for (const double share : curve.shares)
      curve.seconds.push_back(share <= 0.1 ? 100 * share : 10 + 100 * later * (share - 0.1));
    return curve;
  };
  const auto found = [&](double a, double b) {
    return *estimate_time({with_pace(a), with_pace(b), with_pace(a), with_pace(b)}, kTarget, kRun);
  };
  EXPECT_LT(found(1.01, 0.99).pace_spread, 0.06);
  EXPECT_NEAR(found(1.01, 0.99).pace, 1, 0.01);
  EXPECT_GT(found(1.4, 0.9).pace_spread, 0.15) << "0.8 of the steps until the target took 1.4 times as long";
  const TimeToTarget later = found(1.2, 1.2);
  EXPECT_NEAR(later.pace, std::pow(1.16, 4.0 / 7), 0.001) << "three runs count as having kept theirs";
  EXPECT_LT(later.pace_spread, 0.12);
}

TEST(Curves, TheIntervalHoldsEightyOfAHundred) {
  RandomStream random(7);
  const auto draw = [&] { return 0.5 * std::exp(0.14 * static_cast<double>(random.normal())); };
  int held = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto found =
        estimate_time({rising(draw()), rising(draw()), rising(draw()), rising(draw())}, kTarget, interval_of(1, 1e-9));
    held += found->share.holds(*share_reached(rising(draw()), 0.9, true));
  }
  EXPECT_GE(held, 140);
  EXPECT_LE(held, 185) << held;
}

/// Of an accuracy that rises towards 1 as a power law, measured every 10 steps, with noise.
std::vector<std::pair<int64_t, double>> measured(int points, double rate, RandomStream& random) {
  std::vector<std::pair<int64_t, double>> curve;
  for (int at = 1; at <= points; ++at)
    curve.emplace_back(10 * at, 1 - std::pow(10.0 * at, -rate) + 0.003 * static_cast<double>(random.normal()));
  return curve;
}

TEST(OwnCurve, AFirstPartTellsWhenTheTargetIsReached) {
  RandomStream random(11);
  int held = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const double rate = 0.3 + 0.01 * trial, reached = 800;  // of 200 steps that are done
    const double target = 1 - std::pow(reached, -rate);
    const auto steps = steps_by_own_curve(measured(20, rate, random), {"test_accuracy", target, true}, 100000);
    ASSERT_TRUE(steps);
    held += steps->low <= reached && reached <= steps->high;
  }
  EXPECT_GE(held, 28) << "of 40";
}

TEST(OwnCurve, WhatTheCurveDoesNotReachIsNotWithinTheRun) {
  std::vector<std::pair<int64_t, double>> flat;
  for (int64_t at = 1; at <= 12; ++at) flat.emplace_back(10 * at, 0.5 - 0.3 / static_cast<double>(at * at));
  const auto steps = steps_by_own_curve(flat, {"test_accuracy", 0.9, true}, 10000);
  ASSERT_TRUE(steps);
  EXPECT_TRUE(std::isinf(steps->low));
}

TEST(OwnCurve, FewPointsSayNothingAndAReachedTargetIsReached) {
  EXPECT_FALSE(steps_by_own_curve({{1, 1.0}, {2, 0.9}}, {"test_loss", 0.1, false}, 100));
  const auto steps = steps_by_own_curve({{1, 1.0}, {2, 0.9}, {3, 0.5}, {4, 0.4}}, {"test_loss", 0.5, false}, 100);
  EXPECT_EQ(steps->expected, 3);
}

}  // namespace
}  // namespace weft::predict
