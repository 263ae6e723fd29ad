// Searchers on functions whose least values are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/error_of.h"
#include "tests/tune/functions.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/searchers/normal.h"
#include "weft/tune/searchers/parzen.h"
#include "weft/tune/searchers/searcher.h"

namespace weft::tune_tests {
namespace {

using tune::Point;
using tune::Space;

TEST(Sobol, EachDimensionHasOnePointInEachPiece) {
  constexpr uint32_t kPoints = 256;
  for (const int64_t seed : {1, 2}) {
    std::vector<std::set<int>> pieces(64);
    for (uint32_t index = 0; index < kPoints; ++index) {
      const std::vector<double> point = tune::sobol_point(64, index, seed);
      for (size_t dimension = 0; dimension < 64; ++dimension)
        pieces[dimension].insert(static_cast<int>(point[dimension] * kPoints));
    }
    for (const std::set<int>& found : pieces) EXPECT_EQ(found.size(), kPoints);
  }
}

TEST(Sobol, TheFirstTwoDimensionsAreANetInEveryShape) {
  constexpr uint32_t kPoints = 64;
  for (int columns = 1; columns <= 64; columns *= 2) {
    std::set<std::pair<int, int>> pieces;
    for (uint32_t index = 0; index < kPoints; ++index) {
      const std::vector<double> point = tune::sobol_point(2, index, 7);
      pieces.emplace(static_cast<int>(point[0] * columns), static_cast<int>(point[1] * 64 / columns));
    }
    EXPECT_EQ(pieces.size(), kPoints) << columns << " columns";
  }
}

TEST(Sobol, SeedsScrambleDifferently) {
  EXPECT_NE(tune::sobol_point(3, 5, 1), tune::sobol_point(3, 5, 2));
  EXPECT_EQ(tune::sobol_point(3, 5, 1), tune::sobol_point(3, 5, 1));
}

TEST(Normal, QuantilesReverseProbabilities) {
  for (const double probability : {1e-12, 1e-5, 0.01, 0.3, 0.5, 0.8, 0.999, 1 - 1e-9})
    EXPECT_NEAR(tune::normal_probability(tune::normal_quantile(probability)) / probability, 1, 1e-9) << probability;
}

TEST(Normal, TailsKeepTheirDigits) {
  // From mpmath: log(Phi(-30) - Phi(-31)) and log(Phi(41) - Phi(40)).
  EXPECT_NEAR(tune::log_normal_probability(-31, -30), -454.3212439563432, 1e-8);
  EXPECT_NEAR(tune::log_normal_probability(40, 41), -804.608442013754, 1e-8);
  EXPECT_NEAR(tune::log_normal_probability(-1, 1), std::log(0.6826894921370859), 1e-12);
}

TEST(Parzen, DensitiesOfPiecesAddUpToOne) {
  const Space space({tune::log_integer("n", 1, 40), tune::choice("c", {true, false})});
  std::vector<Point> points;
  for (const double unit : {0.1, 0.5, 0.55}) points.push_back(space.from_unit({unit, unit}));
  const tune::ParzenEstimator density(space, {&points[0], &points[1], &points[2]}, {1, 2, 1});
  double sum = 0;
  for (int n = 1; n <= 40; ++n)
    for (int c = 0; c < 2; ++c) sum += std::exp(density.log_density({static_cast<double>(n), static_cast<double>(c)}));
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(Parzen, SamplesFollowTheDensity) {
  const Space space({tune::integer("n", 1, 6)});
  const Point point = {2.0};
  const tune::ParzenEstimator density(space, {&point}, {1});
  std::vector<int> counts(7);
  tune::Random random(3, 0);
  constexpr int kSamples = 20000;
  for (int sample = 0; sample < kSamples; ++sample) ++counts[static_cast<size_t>(*density.sample(random)[0])];
  for (int n = 1; n <= 6; ++n)
    EXPECT_NEAR(counts[static_cast<size_t>(n)] / static_cast<double>(kSamples),
                std::exp(density.log_density({n * 1.0})), 0.015);
}

TEST(Searchers, TheSameSeedGivesTheSameTrials) {
  for (const tune::SearcherEntry& entry : tune::searcher_entries()) {
    const Problem problem = mixed();
    EXPECT_EQ(regret(problem, entry.name, 25, 4), regret(problem, entry.name, 25, 4)) << entry.name;
    EXPECT_NE(regret(problem, entry.name, 25, 4), regret(problem, entry.name, 25, 5)) << entry.name;
  }
}

TEST(Searchers, EveryPointIsOneOfTheSpace) {
  for (const tune::SearcherEntry& entry : tune::searcher_entries()) {
    const Problem problem = conditional();
    tune::Search search(problem.space, {.searcher = entry.name, .seed = 2});
    for (int trial = 0; trial < 40; ++trial) {
      const auto asked = search.ask();
      if (!asked) break;
      EXPECT_EQ(problem.space.values(problem.space.point(asked->values)), asked->values) << entry.name;
      search.tell(asked->number, {problem.function(asked->values)});
    }
  }
}

TEST(Searchers, TrialsThatRunOrFailedAreNoObstacle) {
  for (const tune::SearcherEntry& entry : tune::searcher_entries()) {
    const Problem problem = mixed();
    tune::Search search(problem.space, {.searcher = entry.name, .seed = 2});
    for (int trial = 0; trial < 40; ++trial) {
      const auto asked = search.ask();
      ASSERT_TRUE(asked) << entry.name;
      if (trial % 4 == 1) search.tell_failed(asked->number);
      if (trial % 4 >= 2) search.tell(asked->number, {problem.function(asked->values)});
    }
    EXPECT_TRUE(search.best()) << entry.name;
  }
}

TEST(Searchers, NoPointOfASmallSpaceIsTriedTwice) {
  for (const tune::SearcherEntry& entry : tune::searcher_entries()) {
    tune::Search search(Space({tune::integer("a", 1, 5), tune::choice("b", {true, false})}), {.searcher = entry.name});
    std::set<std::string> seen;
    while (const auto asked = search.ask()) {
      EXPECT_TRUE(seen.insert(tune::print_values(asked->values)).second) << entry.name;
      search.tell(asked->number, {number_of(asked->values, "a")});
      ASSERT_LE(seen.size(), 10u);
    }
    EXPECT_EQ(seen.size(), 10u) << entry.name;
    EXPECT_EQ(search.best()->losses.front(), 1) << entry.name;
  }
}

TEST(Searchers, AnUnknownNameIsNamedWithTheNearest) {
  EXPECT_EQ(test::error_of([] { tune::make_searcher("tp"); }, ErrorKind::usage),
            "there is no searcher 'tp'; did you mean 'tpe'?");
  EXPECT_NE(test::error_of([] { tune::make_searcher("tpe", {.objectives = 2}); }).find("takes one objective"),
            std::string::npos);
}

TEST(Grid, VisitsEveryCombinationOnce) {
  tune::Search search(
      Space({tune::choice("c", {true, false}), tune::real("x", 0, 1).when("c", {true}), tune::integer("n", 1, 3)}),
      {.searcher = "grid", .options = {.grid_levels = 3}});
  std::set<std::string> seen;
  while (const auto asked = search.ask()) {
    seen.insert(tune::print_values(asked->values));
    search.tell(asked->number, {0});
  }
  EXPECT_EQ(seen.size(), 3u * 3 + 3);
}

// The thresholds are the quarter or half of what random search leaves; TPE is far below them.
TEST(Tpe, FindsBranin) {
  const double of_chance = median_regret(branin(), "random", 60), found = median_regret(branin(), "tpe", 60);
  EXPECT_LT(found, 0.5 * of_chance) << "by chance " << of_chance;
}

TEST(Tpe, FindsHartmann6) {
  const double of_chance = median_regret(hartmann6(), "random", 100), found = median_regret(hartmann6(), "tpe", 100);
  EXPECT_LT(found, 0.6 * of_chance) << "by chance " << of_chance;
}

TEST(Tpe, FindsTheMixedOne) {
  const double of_chance = median_regret(mixed(), "random", 60), found = median_regret(mixed(), "tpe", 60);
  EXPECT_LT(found, 0.5 * of_chance) << "by chance " << of_chance;
}

TEST(Tpe, FindsTheConditionalOne) {
  const double of_chance = median_regret(conditional(), "random", 60), found = median_regret(conditional(), "tpe", 60);
  EXPECT_LT(found, 0.5 * of_chance) << "by chance " << of_chance;
}

TEST(Search, TellsMistakes) {
  tune::Search search(branin().space);
  EXPECT_EQ(test::error_of([&] { search.tell(0, {1}); }), "there is no trial 0: 0 were asked for");
  search.ask();
  EXPECT_EQ(test::error_of([&] { search.tell(0, {1, 2}); }), "trial 0 wants 1 losses, got 2");
  search.tell(0, {1});
  EXPECT_EQ(test::error_of([&] { search.tell(0, {1}); }), "trial 0 has been told already");
  EXPECT_EQ(test::error_of([] { tune::Search nothing{Space()}; }),
            "there is nothing to search: the space has no dimensions");
}

TEST(Search, ALossThatIsNoNumberIsAFailure) {
  tune::Search search(branin().space);
  search.ask();
  search.tell(0, {NAN});
  EXPECT_EQ(search.history()[0].state, tune::Trial::State::failed);
  EXPECT_FALSE(search.best());
}

TEST(Search, TheFrontHoldsWhatNothingBeats) {
  tune::Search search(Space({tune::integer("n", 0, 9)}), {.searcher = "random", .options = {.objectives = 2}});
  while (const auto asked = search.ask()) {
    const double n = number_of(asked->values, "n");
    search.tell(asked->number, {std::abs(n - 3), std::abs(n - 6)});
  }
  std::set<double> front;
  for (const tune::Found& found : search.front()) front.insert(number_of(found.values, "n"));
  EXPECT_EQ(front, (std::set<double>{3, 4, 5, 6}));
}

}  // namespace
}  // namespace weft::tune_tests
