#include "weft/planner/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/planner/offers.h"

namespace weft::planner {
namespace {

/// Clusters, candidates on them and what each comes to, all drawn.
struct Market {
  explicit Market(uint64_t seed) {
    RandomStream random(seed);
    const auto uniform = [&](double low, double high) {
      return low + (high - low) * static_cast<double>(random.uniform());
    };
    for (int number = 0; number < 4; ++number) {
      machines::ClusterFile cluster;
      cluster.name = "c" + std::to_string(number);
      cluster.hosts = 1 << (1 + random.below(4));
      cluster.devices_per_host = 1 << random.below(3);
      cluster.price.per_host_hour = random.below(4) == 0 ? 0 : uniform(1, 30);  // 0: nobody knows
      cluster.price.spot_per_host_hour = random.below(2) == 0 ? 0 : cluster.price.per_host_hour / 3;
      clusters.push_back(cluster);
      alone.push_back(uniform(1e4, 1e6));
    }
    spec::RunSpec spec;
    spec.batch = 512;
    candidates = candidates_of(clusters, spec, {.spot = true});
    for (size_t at = 0; at < candidates.size(); ++at) {
      losses.push_back(uniform(1, 2));
      spreads.push_back(uniform(0.02, 0.3));
      impossible.push_back(random.below(8) == 0);
    }
  }
  double least(const Candidate& candidate) const {
    return alone[static_cast<size_t>(candidate.cluster - clusters.data())] /
           static_cast<double>(candidate.strategy.ranks);
  }
  Evaluator evaluator(bool knows_least) {
    Evaluator evaluator;
    evaluator.offer = [this](const Candidate& candidate) {
      ++plans;
      size_t at = 0;
      while (candidates[at].cluster != candidate.cluster || candidates[at].spot != candidate.spot ||
             !(candidates[at].strategy == candidate.strategy))
        ++at;
      if (impossible[at]) fail(ErrorKind::usage, "too little memory");
      Offer offer{.candidate = candidate};
      // The least that is known is below the lower end.
      offer.seconds = predict::interval_of(least(candidate) * losses[at] * std::exp(0.4), spreads[at]);
      offer.cost = offer.seconds.times(candidate.price_per_hour() / 3600);
      return offer;
    };
    if (knows_least) evaluator.least_seconds = [this](const Candidate& candidate) { return least(candidate); };
    return evaluator;
  }
  std::vector<machines::ClusterFile> clusters;
  std::vector<double> alone, losses, spreads;
  std::vector<bool> impossible;
  std::vector<Candidate> candidates;
  int plans = 0;
};

std::set<std::pair<double, double>> points_of(const Found& found) {
  std::set<std::pair<double, double>> points;
  for (const size_t at : found.front) points.emplace(found.offers[at].seconds.expected, found.offers[at].cost.expected);
  return points;
}

double cost_of(const Offer& offer) {
  return offer.candidate.price_per_hour() > 0 ? offer.cost.expected : std::numeric_limits<double>::infinity();
}

double chosen(const Found& found, const std::optional<size_t>& which) {
  return which ? found.offers[*which].cost.expected : -1;
}

TEST(PlanSearch, IsWhatAnEnumerationFinds) {
  int64_t left_out = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Market market(seed);
    const Goal goal{.deadline_seconds = std::exp(7.0 + 0.07 * static_cast<double>(seed)),
                    .budget = 10.0 * static_cast<double>(seed)};
    const Found all = search(market.candidates, goal, market.evaluator(false));
    const Found found = search(market.candidates, goal, market.evaluator(true));
    EXPECT_EQ(points_of(found), points_of(all)) << seed;
    EXPECT_EQ(chosen(found, found.best), chosen(all, all.best)) << seed;
    if (!all.best) {
      EXPECT_EQ(distance_to(found.offers[*found.nearest], goal), distance_to(all.offers[*all.nearest], goal)) << seed;
    }
    EXPECT_EQ(all.left_out, 0);
    left_out += found.left_out;
  }
  EXPECT_GT(left_out, 0) << "or nothing was saved";
}

TEST(PlanSearch, TheFrontHoldsWhatNothingBeats) {
  Market market(5);
  const Found found = search(market.candidates, {}, market.evaluator(false));
  ASSERT_FALSE(found.front.empty());
  for (size_t at = 0; at < found.offers.size(); ++at) {
    bool beaten = false;
    for (const Offer& other : found.offers)
      beaten = beaten || (other.seconds.expected < found.offers[at].seconds.expected &&
                          cost_of(other) < cost_of(found.offers[at]));
    const bool in_front = std::find(found.front.begin(), found.front.end(), at) != found.front.end();
    EXPECT_TRUE(in_front != beaten || !in_front);
    if (in_front) {
      EXPECT_FALSE(beaten);
    }
  }
}

TEST(PlanSearch, WhereNothingMeetsTheGoalTheNearestIsNamed) {
  Market market(2);
  const Goal goal{.deadline_seconds = 1, .budget = 0.01};
  const Found found = search(market.candidates, goal, market.evaluator(true));
  EXPECT_FALSE(found.best);
  ASSERT_TRUE(found.nearest);
  EXPECT_NE(describe(found, goal).find("nothing meets 1.0 s and a budget of 0.01; the nearest: "), std::string::npos)
      << describe(found, goal);
}

TEST(PlanSearch, WhatHasNoPriceKeepsToNoBudget) {
  Market market(3);
  for (machines::ClusterFile& cluster : market.clusters) cluster.price = {};
  const Found found = search(market.candidates, {.budget = 1e9}, market.evaluator(false));
  EXPECT_FALSE(found.best);
}

TEST(PlanSearch, CandidatesShareTheBatchAlike) {
  machines::ClusterFile cluster;
  cluster.hosts = 6;
  cluster.devices_per_host = 4;
  spec::RunSpec spec;
  spec.batch = 48;
  std::set<int64_t> ranks;
  const std::vector<machines::ClusterFile> clusters{cluster};
  for (const Candidate& candidate : candidates_of(clusters, spec, {})) ranks.insert(candidate.strategy.ranks);
  EXPECT_EQ(ranks, (std::set<int64_t>{1, 2, 4, 8, 16, 24}));
}

TEST(PlanSearch, CandidatesOfAMeshShareTheBatchAlongData) {
  machines::ClusterFile cluster;
  cluster.hosts = 4;
  cluster.devices_per_host = 2;
  spec::RunSpec spec;
  spec.batch = 6;
  spec.mesh.tensor = 2;
  const std::vector<machines::ClusterFile> clusters{cluster};
  const auto ranks = [&] {
    std::set<int64_t> found;
    for (const Candidate& candidate : candidates_of(clusters, spec, {})) found.insert(candidate.strategy.ranks);
    return found;
  };
  EXPECT_EQ(ranks(), (std::set<int64_t>{2, 4})) << "of 1 and 2 ranks along data; 4 cannot share 6 samples";
  spec.mesh.data = 3;
  EXPECT_EQ(ranks(), std::set<int64_t>{6}) << "as the mesh says";
}

TEST(PlanSearch, ARecipeThatHasChosenAStrategyKeepsIt) {
  machines::ClusterFile cluster;
  cluster.hosts = 4;
  spec::RunSpec spec;
  spec.batch = 64;
  spec.shard.zero = 2;
  const std::vector<machines::ClusterFile> clusters{cluster};
  for (const Candidate& candidate : candidates_of(clusters, spec, {}))
    EXPECT_EQ(candidate.strategy.zero, candidate.strategy.ranks > 1 ? 2 : 0);
}

machines::ClusterFile failing(double per_device_hour) {
  machines::ClusterFile cluster;
  cluster.hosts = 64;
  cluster.devices_per_host = 8;
  cluster.failures.per_device_hour = per_device_hour;
  cluster.failures.spot_interruptions_per_host_hour = 0.05;
  cluster.failures.restart_seconds = 300;
  cluster.failures.checkpoint_bytes_per_second = 1e9;
  return cluster;
}

TEST(Restarts, WithoutFailuresNothingIsAdded) {
  const Restarts none = restarts_of(failing(0), 4, false, 1e5, 1e10, false);
  EXPECT_EQ(none.factor, 1);
  EXPECT_EQ(none.interval_seconds, 0);
}

TEST(Restarts, TheIntervalIsTheBest) {
  const machines::ClusterFile cluster = failing(1e-4);
  const Restarts best = restarts_of(cluster, 64, false, 1e6, 60e9, false);
  EXPECT_NEAR(best.mean_seconds_between, 3600 / (1e-4 * 512), 1e-6);
  EXPECT_NEAR(best.interval_seconds, std::sqrt(2 * 60 * best.mean_seconds_between), 1e-6);
  const auto factor = [&](double interval) {
    const double mean = best.mean_seconds_between;
    return mean * std::exp(300 / mean) * std::expm1((interval + 60) / mean) / interval;
  };
  EXPECT_LT(best.factor, factor(best.interval_seconds / 2));
  EXPECT_LT(best.factor, factor(best.interval_seconds * 2));
  EXPECT_GT(best.factor, 1);
}

TEST(Restarts, AreAsManyAsASimulationOfFailuresHas) {
  const machines::ClusterFile cluster = failing(1e-3);
  const double work = 4e5;
  const Restarts predicted = restarts_of(cluster, 16, false, work, 30e9, false);
  RandomStream random(1);
  double total = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    double done = 0, now = 0;
    const auto draw = [&] {
      return -predicted.mean_seconds_between * std::log(1 - static_cast<double>(random.uniform()));
    };
    double fails_at = draw();
    while (done < work) {
      const double piece = predicted.interval_seconds + predicted.checkpoint_seconds;
      if (now + piece <= fails_at) {
        now += piece;
        done += predicted.interval_seconds;
      } else {
        now = fails_at;
        fails_at = now + draw();
        // A failure while restarting begins the restart anew.
        while (now + cluster.failures.restart_seconds > fails_at) {
          now = fails_at;
          fails_at = now + draw();
        }
        now += cluster.failures.restart_seconds;
      }
    }
    total += now;
  }
  EXPECT_NEAR(total / kRuns / work, predicted.factor, 0.02 * predicted.factor);
}

TEST(Restarts, SpotMachinesAreInterruptedMore) {
  EXPECT_GT(restarts_of(failing(1e-5), 8, true, 1e5, 1e10, false).factor,
            restarts_of(failing(1e-5), 8, false, 1e5, 1e10, false).factor);
}

}  // namespace
}  // namespace weft::planner
