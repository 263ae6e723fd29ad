#include "weft/search/search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/rng.h"

namespace weft::search {
namespace {

using predict::Strategy;

/// Strategies with times and memory that are drawn; bounds lie somewhere below the times.
struct Drawn {
  explicit Drawn(uint64_t seed) {
    RandomStream random(seed);
    for (int64_t number = 0; number < 40; ++number) {
      Strategy strategy{.ranks = 64, .batch = number};
      strategy.tensor = 1 << random.below(4);
      strategy.pipeline = 1 << random.below(3);
      candidates.strategies.push_back(strategy);
      const double seconds = 1 + random.uniform();
      bounds.push_back(seconds * (0.5 + 0.5 * random.uniform()));
      estimates.push_back({.seconds = seconds,
                           .bound_seconds = 0.95 * seconds,
                           .memory_bytes = 10,
                           .least_bytes = 5,
                           .fits = random.below(3) > 0});
    }
  }
  Evaluator evaluator() {
    return {.bound = [this](const Strategy& of) { return bounds[static_cast<size_t>(of.batch)]; },
            .estimate = [this](const Strategy& of) { return estimates[static_cast<size_t>(of.batch)]; }};
  }
  Candidates candidates;
  std::vector<double> bounds;
  std::vector<Estimate> estimates;
};

TEST(StrategySearch, FindsWhatAnEnumerationFinds) {
  int64_t left_out = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Drawn drawn(seed);
    const Found found = search(drawn.candidates, drawn.evaluator());
    double best = kNever;
    for (const Estimate& estimate : drawn.estimates)
      if (estimate.fits) best = std::min(best, estimate.seconds);
    ASSERT_TRUE(found.chosen) << seed;
    EXPECT_EQ(found.ranked[*found.chosen].estimate.seconds, best) << seed;
    EXPECT_EQ(found.best_seconds, best);
    EXPECT_NEAR(found.gap(), 1 / 0.95 - 1, 1e-9);
    EXPECT_EQ(found.counts.bounded + found.counts.estimated, 40);
    left_out += found.counts.bounded;
  }
  EXPECT_GT(left_out, 100) << "bounds leave something out";
}

TEST(StrategySearch, WhatFitsByItsPlanIsChosenByThePlansTime) {
  Drawn drawn(1);
  Evaluator evaluator = drawn.evaluator();
  std::vector<int64_t> planned;
  evaluator.plan = [&](const Strategy& of) -> std::optional<Planned> {
    planned.push_back(of.batch);
    // The first three are too large after all, and the others the faster the later.
    return Planned{.fits = planned.size() > 3,
                   .seconds = 1 - 0.01 * static_cast<double>(planned.size()),
                   .memory_bytes = 7,
                   .strategy = of};
  };
  const Found found = search(drawn.candidates, evaluator, {.plans = 6});
  ASSERT_TRUE(found.chosen);
  EXPECT_EQ(planned.size(), 6u);
  EXPECT_EQ(found.ranked[*found.chosen].strategy.batch, planned.back());
  EXPECT_TRUE(found.is_planned);
  EXPECT_EQ(found.counts.plans, 6);
}

TEST(StrategySearch, PlansGoOnUntilOneFitsAndThenEnd) {
  Drawn drawn(2);
  Evaluator evaluator = drawn.evaluator();
  int plans = 0;
  evaluator.plan = [&](const Strategy& of) -> std::optional<Planned> {
    return Planned{.fits = ++plans == 11, .seconds = 1, .memory_bytes = 7, .strategy = of};
  };
  EXPECT_TRUE(search(drawn.candidates, evaluator, {.plans = 4, .most_plans = 20, .margin = 3}).chosen);
  EXPECT_EQ(plans, 11);
  plans = 100;
  EXPECT_FALSE(search(drawn.candidates, evaluator, {.plans = 4, .most_plans = 20, .margin = 3}).chosen);
  EXPECT_EQ(plans, 120);
}

TEST(StrategySearch, PlansGoOnWhileOthersAreEstimatedToBeFarFaster) {
  Drawn drawn(2);
  Evaluator evaluator = drawn.evaluator();
  int plans = 0;
  evaluator.plan = [&](const Strategy& of) -> std::optional<Planned> {
    // The first four are slower than they were estimated to be.
    return Planned{.fits = true, .seconds = ++plans > 4 ? 1.5 : 9, .memory_bytes = 7, .strategy = of};
  };
  const Found found = search(drawn.candidates, evaluator, {.plans = 2, .most_plans = 20});
  EXPECT_EQ(found.ranked[*found.chosen].planned->seconds, 1.5);
  EXPECT_LT(plans, 20);
}

TEST(StrategySearch, EstimatesDecideWhereThePlanOfTheFirstWouldBeTooLarge) {
  Drawn drawn(3);
  Evaluator evaluator = drawn.evaluator();
  const Found without = search(drawn.candidates, evaluator);
  evaluator.plan = [&](const Strategy& of) -> std::optional<Planned> {
    if (of == without.ranked[0].strategy) return std::nullopt;
    return Planned{.fits = true, .seconds = 1.5, .memory_bytes = 7, .strategy = of};
  };
  const Found found = search(drawn.candidates, evaluator);
  EXPECT_FALSE(found.is_planned);
  EXPECT_EQ(found.ranked[*found.chosen].strategy, without.ranked[*without.chosen].strategy);
}

TEST(StrategySearch, PlansThatWouldBeTooLargeKeepOthersFromNothing) {
  Drawn drawn(3);
  Evaluator evaluator = drawn.evaluator();
  const Strategy first = search(drawn.candidates, evaluator).ranked[0].strategy;
  int64_t fastest = -1;
  evaluator.plan = [&](const Strategy& of) -> std::optional<Planned> {
    if (of != first && of.batch % 2 == 0) return std::nullopt;
    if (fastest < 0 && of != first) fastest = of.batch;
    return Planned{.fits = true, .seconds = of.batch == fastest ? 1.0 : 2.0, .memory_bytes = 7, .strategy = of};
  };
  const Found found = search(drawn.candidates, evaluator, {.plans = 4});
  EXPECT_TRUE(found.is_planned);
  EXPECT_EQ(found.counts.plans, 4);
  EXPECT_EQ(found.ranked[*found.chosen].strategy.batch, fastest);
}

TEST(StrategySearch, WhatCannotBeEstimatedIsNoStrategyAndSaysWhy) {
  Drawn drawn(4);
  Evaluator evaluator = drawn.evaluator();
  evaluator.bound = [](const Strategy& of) -> double {
    if (of.tensor > 1) fail(ErrorKind::usage, "no weight can be split");
    return 1;
  };
  const Found found = search(drawn.candidates, evaluator);
  ASSERT_EQ(found.refused.size(), 1u);
  EXPECT_EQ(found.refused[0].why, "no weight can be split");
  for (const Ranked& one : found.ranked) EXPECT_EQ(one.strategy.tensor, 1);
}

}  // namespace
}  // namespace weft::search
