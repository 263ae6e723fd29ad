#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "weft/plot/figure.h"

namespace weft::plot {
namespace {

TEST(Axis, MarksAreOneTwoOrFiveTimesAPowerOfTen) {
  const Axis axis = make_axis(0.13, 2.27, 6);
  EXPECT_EQ(axis.low, 0);
  EXPECT_EQ(axis.step, 0.5);
  EXPECT_EQ(axis.high, 2.5);
  EXPECT_EQ(axis.decimals, 1);
}

TEST(Axis, HoldsTheWholeRange) {
  for (const double low : {-3.0, 0.0, 1e-4, 7.0, 12345.0})
    for (const double width : {1e-3, 0.7, 3.0, 1e5}) {
      const Axis axis = make_axis(low, low + width, 7);
      EXPECT_LE(axis.low, low + width * 1e-6);
      EXPECT_GE(axis.high, low + width * (1 - 1e-6));
      EXPECT_LE((axis.high - axis.low) / axis.step, 16) << low << " " << width;
    }
}

TEST(Axis, OneValueStandsInTheMiddle) {
  const Axis axis = make_axis(5, 5, 6);
  EXPECT_LT(axis.low, 5);
  EXPECT_GT(axis.high, 5);
}

TEST(Axis, MarksEndWhereValuesDifferByTheLastBit) {
  for (const double value : {1.0, 0.3, -12345.678, 1e300, 5e-324}) {
    const double next = std::nextafter(value, std::numeric_limits<double>::infinity());
    const std::vector<double> marks = marks_of(make_axis(value, next, 6));
    EXPECT_GE(marks.size(), 2u) << value;
    EXPECT_LE(marks.size(), 20u) << value;
    EXPECT_LE(marks.front(), value);
    EXPECT_GE(marks.back(), next);
  }
  EXPECT_EQ(marks_of({.low = 0, .high = 1.5, .step = 0.5}), (std::vector<double>{0, 0.5, 1, 1.5}));
}

TEST(Axis, MarksStandAtWholeEpochs) {
  const Axis axis = make_axis(0.25, 1, 7, 1);
  EXPECT_EQ(marks_of(axis), (std::vector<double>{0, 1}));
  EXPECT_EQ(label_of(axis, 1), "1");
  EXPECT_EQ(make_axis(0, 300, 7, 1).step, 50);
}

TEST(Axis, SharesAreLabelledInPercent) {
  EXPECT_EQ(percent_label_of(make_axis(0.8, 1, 5), 0.85), "85 %");
  EXPECT_EQ(percent_label_of(make_axis(0.99, 0.995, 6), 0.991), "99.1 %");
}

TEST(Axis, LabelsHaveTheDecimalsOfTheStep) {
  EXPECT_EQ(label_of(make_axis(0, 1, 6), 0.2), "0.2");
  EXPECT_EQ(label_of(make_axis(0, 1000, 6), 200), "200");
  EXPECT_EQ(label_of(make_axis(-1, 1, 6), -1e-17), "0.0");
}

TEST(Smooth, KeepsAConstantFromTheFirstValueOn) {
  for (const double value : smooth({3, 3, 3, 3}, 0.9)) EXPECT_NEAR(value, 3, 1e-12);
}

TEST(Smooth, WeighsThePast) {
  const std::vector<double> result = smooth({0, 1}, 0.5);
  EXPECT_NEAR(result[1], 0.5 / 0.75, 1e-12);  // 0.25 * 0 + 0.5 * 1, over the weights 0.25 + 0.5
}

TEST(Smooth, PassesOverWhatIsNoNumber) {
  const std::vector<double> result = smooth({1, std::numeric_limits<double>::quiet_NaN(), 1}, 0.5);
  EXPECT_NEAR(result[1], 1, 1e-12);
  EXPECT_NEAR(result[2], 1, 1e-12);
}

}  // namespace
}  // namespace weft::plot
