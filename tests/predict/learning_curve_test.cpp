#include "weft/predict/learning_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "weft/base/rng.h"

namespace weft::predict {
namespace {

using Curve = std::vector<std::pair<int64_t, double>>;

TEST(LearningCurve, OfAPowerLawGoesOnAsOne) {
  Curve curve;
  const auto loss = [](double epoch) { return 0.2 + 1.5 * std::pow(epoch, -0.7); };
  for (int64_t epoch = 1; epoch <= 10; ++epoch) curve.emplace_back(epoch, loss(static_cast<double>(epoch)));
  const auto found = extrapolate(curve, 40);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->median, loss(40), 0.02);
}

TEST(LearningCurve, ThatHasLevelledOffStaysWhereItIs) {
  Curve curve;
  for (int64_t epoch = 1; epoch <= 12; ++epoch) curve.emplace_back(epoch, epoch < 3 ? 1.0 : 0.5);
  const auto found = extrapolate(curve, 50);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->median, 0.5, 0.1);
}

/// An interval of 80 % that holds the truth too seldom, or always, is none.
TEST(LearningCurve, HoldsWhatComesInEightOfTenCases) {
  int inside = 0;
  double width = 0;
  constexpr int kCurves = 200;
  for (int64_t number = 0; number < kCurves; ++number) {
    RandomStream random(3, static_cast<uint64_t>(number));
    const double level = 0.2 + random.uniform(), height = 0.5 + random.uniform(), rate = 0.4 + random.uniform();
    const auto loss = [&](double epoch) { return level + height * std::pow(epoch, -rate) + 0.01 * random.normal(); };
    Curve curve;
    for (int64_t epoch = 1; epoch <= 10; ++epoch) curve.emplace_back(epoch, loss(static_cast<double>(epoch)));
    const auto found = extrapolate(curve, 30);
    ASSERT_TRUE(found);
    EXPECT_LE(found->low, found->median);
    EXPECT_LE(found->median, found->high);
    const double truth = loss(30);
    inside += found->low <= truth && truth <= found->high;
    width += (found->high - found->low) / kCurves;
  }
  EXPECT_GT(inside, kCurves * 65 / 100);
  EXPECT_LT(inside, kCurves * 97 / 100);
  EXPECT_LT(width, 0.3);
}

TEST(LearningCurve, OfFewPointsOrOfNoNumbersSaysNothing) {
  EXPECT_FALSE(extrapolate({{1, 1.0}, {2, 0.5}, {3, 0.4}}, 10));
  EXPECT_FALSE(extrapolate({{1, 1.0}, {2, 0.5}, {3, 0.4}, {4, std::numeric_limits<double>::infinity()}}, 10));
  EXPECT_FALSE(extrapolate({{1, 1.0}, {2, 0.5}, {3, 0.4}, {4, 0.3}}, 4)) << "that is there already";
}

}  // namespace
}  // namespace weft::predict
