// Shares of variance where they can be told by hand.
#include "weft/tune/results/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "tests/support/error_of.h"
#include "weft/tune/space/random.h"

namespace weft::tune {
namespace {

std::vector<Measurement> drawn(size_t count, size_t dimensions,
                               const std::function<double(const std::vector<double>&)>& loss) {
  Random random(7, 0);
  std::vector<Measurement> measured(count);
  for (Measurement& one : measured) {
    for (size_t dimension = 0; dimension < dimensions; ++dimension) one.units.push_back(random.uniform());
    one.loss = loss(one.units);
  }
  return measured;
}

double share_of(const Importances& importances, size_t first, size_t second) {
  for (const PairShare& pair : importances.pairs)
    if (pair.first == first && pair.second == second) return pair.share;
  return -1;
}

TEST(Importance, OfASumIsThatOfItsTerms) {
  // The variances of 2x and of y are 4/12 and 1/12.
  const auto measured = drawn(600, 3, [](const auto& x) { return 2 * x[0] + x[1]; });
  const Importances importances = Forest(measured).importances();
  EXPECT_NEAR(importances.keys[0], 0.8, 0.05);
  EXPECT_NEAR(importances.keys[1], 0.2, 0.05);
  EXPECT_LT(importances.keys[2], 0.02);
  for (const PairShare& pair : importances.pairs) EXPECT_LT(pair.share, 0.05);
}

TEST(Importance, OfAProductIsThatOfThePair) {
  const auto measured = drawn(1500, 3, [](const auto& x) { return (x[0] - 0.5) * (x[2] - 0.5); });
  const Importances importances = Forest(measured).importances();
  EXPECT_GT(share_of(importances, 0, 2), 0.7);
  EXPECT_EQ(importances.pairs.front().first, 0u);
  EXPECT_EQ(importances.pairs.front().second, 2u);
  for (const double alone : importances.keys) EXPECT_LT(alone, 0.15);
}

TEST(Importance, OfTwoKeysAddsUpToAll) {
  // Whatever the trees are like: two keys have no third one to share with.
  const auto measured = drawn(80, 2, [](const auto& x) { return std::sin(9 * x[0]) * x[1] + x[1] * x[1]; });
  const Importances importances = Forest(measured).importances();
  EXPECT_NEAR(importances.keys[0] + importances.keys[1] + share_of(importances, 0, 1), 1, 1e-9);
}

TEST(Importance, MeansOverTheOthersAreThoseOfTheFunction) {
  const auto measured = drawn(1500, 3, [](const auto& x) { return x[0] + 10 * x[1] * x[2]; });
  const std::vector<double> means = Forest(measured).mean_over_others(0, 1, 4, 4);
  for (size_t row = 0; row < 4; ++row)
    for (size_t column = 0; column < 4; ++column) {
      const double x = (static_cast<double>(column) + 0.5) / 4, y = (static_cast<double>(row) + 0.5) / 4;
      EXPECT_NEAR(means[row * 4 + column], x + 5 * y, 0.6) << row << " " << column;
    }
}

TEST(Importance, DependsOnTheSeedAlone) {
  const auto measured = drawn(50, 3, [](const auto& x) { return x[0] * x[1] + x[2]; });
  EXPECT_EQ(Forest(measured).importances().keys, Forest(measured).importances().keys);
  EXPECT_NE(Forest(measured).importances().keys, Forest(measured, {.seed = 2}).importances().keys);
}

TEST(Importance, WhereAllResultsAreEqualNothingDecides) {
  const Importances importances = Forest(drawn(20, 2, [](const auto&) { return 1.0; })).importances();
  EXPECT_EQ(std::accumulate(importances.keys.begin(), importances.keys.end(), 0.0), 0);
}

TEST(Importance, OneResultIsTooFew) {
  EXPECT_NE(test::error_of([] { Forest(drawn(1, 2, [](const auto&) { return 1.0; })); }, ErrorKind::usage)
                .find("two results or more, and there is 1"),
            std::string::npos);
}

TEST(Importance, MeasuresAreUnitCoordinatesAndLosses) {
  const StudySettings settings{
      .space = Space({log_real("rate", 1e-4, 1), choice("name", {std::string("a"), std::string("b")}),
                      real("momentum", 0, 1).when("name", {std::string("a")})}),
      .objectives = {{"validation_accuracy", true}}};
  const std::vector<StudyTrial> trials = {
      {.state = StudyTrial::State::finished, .values = {{"rate", 1e-2}, {"name", std::string("b")}}, .results = {0.75}},
      {.state = StudyTrial::State::failed, .values = {{"rate", 1e-2}, {"name", std::string("b")}}}};
  const std::vector<Measurement> measured = measurements_of(settings, trials);
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_NEAR(measured[0].units[0], 0.5, 1e-12);
  EXPECT_EQ(measured[0].units[2], 0.5) << "it has no momentum";
  EXPECT_EQ(measured[0].loss, -0.75);
}

}  // namespace
}  // namespace weft::tune
