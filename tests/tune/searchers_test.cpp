// Searchers on functions whose least values are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/error_of.h"
#include "tests/tune/functions.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/searchers/gaussian_process.h"
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

/// Of the problem's space, unless it has choices and the searcher takes numbers alone.
bool takes(const tune::SearcherEntry& entry, const Problem& problem) {
  return test::error_of([&] { entry.make({.library = &library()})->check(problem.space); }) == "no error";
}

TEST(Searchers, TheSameSeedGivesTheSameTrials) {
  for (const tune::SearcherEntry& entry : tune::searcher_entries()) {
    const Problem problem = takes(entry, mixed()) ? mixed() : branin();
    EXPECT_EQ(regret(problem, entry.name, 25, 4), regret(problem, entry.name, 25, 4)) << entry.name;
    EXPECT_NE(regret(problem, entry.name, 25, 4), regret(problem, entry.name, 25, 5)) << entry.name;
  }
}

TEST(Searchers, EveryPointIsOneOfTheSpace) {
  for (const tune::SearcherEntry& entry : tune::searcher_entries()) {
    const Problem problem = takes(entry, conditional()) ? conditional() : branin();
    tune::Search search(problem.space, {.searcher = entry.name, .seed = 2, .options = {.library = &library()}});
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
    const Problem problem = takes(entry, mixed()) ? mixed() : hartmann6();
    tune::Search search(problem.space, {.searcher = entry.name, .seed = 2, .options = {.library = &library()}});
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
    const Problem problem{.space = Space({tune::integer("a", 1, 5), tune::choice("b", {true, false})}), .function = {}};
    if (!takes(entry, problem)) continue;
    tune::Search search(problem.space, {.searcher = entry.name, .options = {.library = &library()}});
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

TEST(Automatic, AsksAGaussianProcessWhileTrialsAreFewAndParzenEstimatorsThen) {
  const Problem problem = mixed();
  tune::History history;
  for (size_t number = 0; number < 220; ++number) {
    const tune::SearchState state{problem.space, history, /*seed=*/3};
    const tune::Proposal asked = *tune::make_searcher("random")->ask(state);
    if (number == 60 || number == 199 || number == 200 || number == 219) {
      const std::string other = number < 200 ? "gp" : "tpe";
      EXPECT_EQ(tune::make_searcher("auto")->ask(state)->point, tune::make_searcher(other)->ask(state)->point)
          << number;
    }
    history.push_back({.point = asked.point,
                       .state = tune::Trial::State::finished,
                       .losses = {problem.function(problem.space.values(asked.point))}});
  }
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

TEST(GaussianProcess, ItsGradientIsThatOfItsDensity) {
  const std::vector<bool> is_choice = {false, true, false};
  std::vector<tune::Features> points;
  std::vector<double> values;
  tune::Random random(5, 0);
  for (int point = 0; point < 12; ++point) {
    points.push_back({random.uniform(), static_cast<double>(random.below(3)), random.uniform()});
    values.push_back(random.normal());
  }
  const std::vector<double> logs = {0.3, -0.5, 1.2, 0.1, -3};
  std::vector<double> gradient, ignored;
  tune::negative_log_posterior(points, values, is_choice, logs, gradient);
  for (size_t index = 0; index < logs.size(); ++index) {
    std::vector<double> above = logs, below = logs;
    above[index] += 1e-5;
    below[index] -= 1e-5;
    const double difference = (tune::negative_log_posterior(points, values, is_choice, above, ignored) -
                               tune::negative_log_posterior(points, values, is_choice, below, ignored)) /
                              2e-5;
    EXPECT_NEAR(gradient[index], difference, 1e-6 * (1 + std::abs(difference))) << index;
  }
}

TEST(GaussianProcess, PredictsAsTheEquationsSay) {
  // Two points and no noise to speak of: k(0.5) is exp(-d)(1 + d + d^2 / 3) with d = sqrt(5) * 0.5.
  const tune::GaussianProcess process({{0.0}, {1.0}}, {1, -1}, {false},
                                      {.inverse_squares = {1}, .scale = 2, .noise = 1e-12});
  const auto kernel = [](double r) {
    const double d = std::sqrt(5.0) * r;
    return 2 * std::exp(-d) * (1 + d + d * d / 3);
  };
  EXPECT_NEAR(process.predict({0.0}).mean, 1, 1e-9);
  EXPECT_NEAR(process.predict({0.0}).variance, 0, 1e-9);
  EXPECT_NEAR(process.predict({0.5}).mean, 0, 1e-12);
  const double a = kernel(0), b = kernel(1), c = kernel(0.5);
  EXPECT_NEAR(process.predict({0.5}).variance, a - 2 * c * c / (a + b), 1e-9);
}

TEST(GaussianProcess, PredictionsHaveTheirGradients) {
  const tune::GaussianProcess process({{0.1, 0}, {0.7, 1}, {0.4, 1}}, {0.5, -1, 0.2}, {false, true},
                                      {.inverse_squares = {4, 1}, .scale = 1.5, .noise = 0.01});
  const tune::Prediction at = process.predict({0.3, 1}, true);
  const tune::Prediction above = process.predict({0.3 + 1e-6, 1}), below = process.predict({0.3 - 1e-6, 1});
  EXPECT_NEAR(at.mean_gradient[0], (above.mean - below.mean) / 2e-6, 1e-6);
  EXPECT_NEAR(at.variance_gradient[0], (above.variance - below.variance) / 2e-6, 1e-6);
}

TEST(GaussianProcess, ImprovementsFarOutKeepTheirDigits) {
  // From mpmath: log(phi(z) + z Phi(z)).
  EXPECT_NEAR(tune::log_improvement(0.5), -0.35982768374506382, 1e-12);
  EXPECT_NEAR(tune::log_improvement(-3), -7.8696860596030285, 1e-9);
  EXPECT_NEAR(tune::log_improvement(-24.9), -317.35848574266738, 1e-8);
  EXPECT_NEAR(tune::log_improvement(-25.1), -322.37440987246403, 1e-8);
  EXPECT_NEAR(tune::log_improvement(-1000), -500014.73445209116, 1e-6);
}

TEST(GaussianProcess, FindsBranin) {
  const double found = median_regret(branin(), "gp", 30, 7);
  EXPECT_LT(found, 0.01);
}

TEST(GaussianProcess, FindsHartmann6) {
  const double of_chance = median_regret(hartmann6(), "random", 50, 7), found = median_regret(hartmann6(), "gp", 50, 7);
  EXPECT_LT(found, 0.3 * of_chance) << "by chance " << of_chance;
}

TEST(GaussianProcess, FindsTheMixedOne) {
  const double of_chance = median_regret(mixed(), "random", 40, 7), found = median_regret(mixed(), "gp", 40, 7);
  EXPECT_LT(found, 0.3 * of_chance) << "by chance " << of_chance;
}

TEST(GaussianProcess, FindsTheConditionalOne) {
  const double of_chance = median_regret(conditional(), "random", 40, 7),
               found = median_regret(conditional(), "gp", 40, 7);
  EXPECT_LT(found, 0.3 * of_chance) << "by chance " << of_chance;
}

TEST(GaussianProcess, TrialsThatRunTurnOthersAway) {
  const Problem problem = branin();
  tune::Search search(problem.space, {.searcher = "gp", .seed = 3});
  for (int trial = 0; trial < 15; ++trial) {
    const auto asked = search.ask();
    search.tell(asked->number, {problem.function(asked->values)});
  }
  std::vector<std::pair<double, double>> asked;  // a batch of four, before any is told
  for (int trial = 0; trial < 4; ++trial) {
    const Values values = search.ask()->values;
    for (const auto& [x, y] : asked) EXPECT_GT(std::hypot(x - number_of(values, "x"), y - number_of(values, "y")), 0.1);
    asked.emplace_back(number_of(values, "x"), number_of(values, "y"));
  }
}

TEST(CmaEs, FindsTheBottomOfALongValley) {
  const Problem problem{tune::Space({tune::real("x", -2, 2), tune::real("y", -1, 3)}),
                        [](const Values& at) {  // Rosenbrock's
                          const double x = number_of(at, "x"), y = number_of(at, "y");
                          return 100 * (y - x * x) * (y - x * x) + (1 - x) * (1 - x);
                        }};
  const double of_chance = median_regret(problem, "random", 400, 9), found = median_regret(problem, "cma-es", 400, 9);
  EXPECT_LT(found, 0.01 * of_chance) << "by chance " << of_chance;
}

TEST(CmaEs, FindsIntegersTooAndDoesNotGetStuck) {
  std::vector<tune::Dimension> dimensions;
  for (int index = 0; index < 3; ++index) dimensions.push_back(tune::integer("n" + std::to_string(index), -20, 20));
  for (int index = 0; index < 3; ++index) dimensions.push_back(tune::real("x" + std::to_string(index), -20, 20));
  const Problem problem{tune::Space(dimensions), [](const Values& at) {
                          double sum = 0;
                          for (int index = 0; index < 3; ++index) {
                            const double n = number_of(at, "n" + std::to_string(index)) - 11 + 3 * index;
                            const double x = number_of(at, "x" + std::to_string(index)) + 5;
                            sum += n * n + x * x;
                          }
                          return sum;
                        }};
  EXPECT_LT(median_regret(problem, "cma-es", 500, 9), 1e-3);
}

TEST(CmaEs, SaysWhatItCannotSearch) {
  EXPECT_NE(test::error_of([] { tune::Search search(mixed().space, {.searcher = "cma-es"}); }, ErrorKind::usage)
                .find("kind is a list of choices; take tpe or gp"),
            std::string::npos);
}

/// The area that a front dominates, up to (1, 1) on ZDT's scale of 0 to 1.1.
double hypervolume(std::vector<tune::Found> front) {
  std::sort(front.begin(), front.end(), [](const auto& a, const auto& b) { return a.losses[0] < b.losses[0]; });
  double area = 0, height = 1.1;
  for (const tune::Found& found : front) {
    if (found.losses[0] > 1.1 || found.losses[1] >= height) continue;
    area += (1.1 - found.losses[0]) * (height - found.losses[1]);
    height = found.losses[1];
  }
  return area;
}

double median_hypervolume(const std::string& searcher) {
  std::vector<double> volumes;
  for (int seed = 1; seed <= 7; ++seed) {
    std::vector<tune::Dimension> dimensions;
    for (int index = 0; index < 8; ++index) dimensions.push_back(tune::real("x" + std::to_string(index), 0, 1));
    tune::Search search(tune::Space(dimensions), {.searcher = searcher, .seed = seed, .options = {.objectives = 2}});
    for (int trial = 0; trial < 600; ++trial) {  // ZDT1
      const tune::Asked asked = *search.ask();
      double g = 1;
      for (int index = 1; index < 8; ++index) g += 9.0 / 7 * number_of(asked.values, "x" + std::to_string(index));
      const double first = number_of(asked.values, "x0");
      search.tell(asked.number, {first, g * (1 - std::sqrt(first / g))});
    }
    volumes.push_back(hypervolume(search.front()));
  }
  return median(std::move(volumes));
}

TEST(Nsga, FindsTheFrontOfTwoObjectives) {
  // The whole front dominates 0.1 * 1.1 + 2/3 + 0.1 = 0.877.
  const double found = median_hypervolume("nsga2"), of_chance = median_hypervolume("random");
  EXPECT_GT(found, 0.6);
  EXPECT_GT(found, of_chance + 0.3);
}

/// Six choices of four values; a trial loses by each that is not that of the one before, plus 1.
TEST(Ppo, LearnsChoicesThatDependOnEachOther) {
  std::vector<tune::Dimension> dimensions;
  for (int index = 0; index < 6; ++index)
    dimensions.push_back(tune::choice("c" + std::to_string(index), {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}}));
  std::vector<double> first, last;
  for (const int64_t seed : {1, 2, 3}) {
    tune::Search search(Space(dimensions),
                        {.searcher = "ppo", .seed = seed, .options = {.library = &library()}, .repeats = true});
    constexpr int kTrials = 240, kShown = 40;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto asked = search.ask();
      double loss = 0;
      for (size_t index = 1; index < 6; ++index) {
        const auto value = std::get<int64_t>(asked->values[index].second),
                   before = std::get<int64_t>(asked->values[index - 1].second);
        loss += value == (before + 1) % 4 ? 0 : 1;
      }
      search.tell(asked->number, {loss});
      if (trial < kShown) first.push_back(loss);
      if (trial >= kTrials - kShown) last.push_back(loss);
    }
  }
  const auto mean = [](const std::vector<double>& losses) {
    return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  };
  EXPECT_LT(mean(last), 0.6 * mean(first));
}

/// What a searcher keeps between its answers changes none of them.
TEST(Ppo, AnswersAsASearcherThatHasKeptNothing) {
  const Space space({tune::choice("a", {int64_t{0}, int64_t{1}, int64_t{2}}), tune::real("b", 0, 1)});
  const auto make = [] { return tune::make_searcher("ppo", {.library = &library()}); };
  const auto kept = make();
  tune::History history;
  for (int number = 0; number < 40; ++number) {
    const tune::SearchState state{space, history, 1};
    const auto proposal = kept->ask(state);
    if (number % 7 == 0) {
      EXPECT_EQ(proposal->point, make()->ask(state)->point) << number;
    }
    history.push_back({.point = proposal->point, .state = tune::Trial::State::running});
    if (number >= 3) {  // results come later than the next question, and not in order
      tune::Trial& ended = history[static_cast<size_t>(number % 2 == 0 ? number - 3 : number - 1)];
      ended.state = tune::Trial::State::finished;
      ended.losses = {*ended.point[0]};
    }
  }
}

TEST(Ppo, WantsALibrary) {
  EXPECT_NE(test::error_of([] { tune::make_searcher("ppo"); }, ErrorKind::usage).find("give it a library"),
            std::string::npos);
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
