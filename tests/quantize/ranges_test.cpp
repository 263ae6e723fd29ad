#include "weft/quantize/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/rng.h"

namespace weft::quantize {
namespace {

using ::testing::HasSubstr;

Histogram histogram_of(const std::vector<float>& numbers) {
  RealRange range;
  widen(range, numbers, "x");
  Histogram histogram = empty_histogram(range);
  add(histogram, numbers);
  return histogram;
}

/// Mostly from a normal distribution, with a few numbers far out.
std::vector<float> with_outliers() {
  RandomStream stream(3);
  std::vector<float> numbers;
  for (int i = 0; i < 100000; ++i) numbers.push_back(stream.normal());
  for (int i = 0; i < 5; ++i) numbers.push_back(60);
  return numbers;
}

/// Of what 255 steps of the range make of the numbers, computed number by number.
double squared_error(const std::vector<float>& numbers, const RealRange& range) {
  const double step = (range.high - range.low) / 255;
  double error = 0;
  for (const float number : numbers) {
    const double x = static_cast<double>(number), clipped = std::min(range.high, std::max(range.low, x));
    const double rounded = range.low + std::nearbyint((clipped - range.low) / step) * step;
    error += (x - rounded) * (x - rounded);
  }
  return error;
}

TEST(Widen, RefusesNaNByTheNameOfWhatHasIt) {
  RealRange range;
  const std::vector<float> numbers{1, NAN};
  try {
    widen(range, numbers, "conv1");
    FAIL() << "took a NaN";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what(), HasSubstr("'conv1' has a NaN"));
  }
}

TEST(Widen, RefusesInfinity) {
  RealRange range;
  const std::vector<float> numbers{-INFINITY};
  EXPECT_THROW(widen(range, numbers, "x"), Error);
}

TEST(ChooseRange, OfMinMaxIsTheWholeWithZero) {
  const RealRange range = choose_range(histogram_of({2, 5, 3}), Calibration::min_max, 255, false);
  EXPECT_EQ(range.low, 0);
  EXPECT_EQ(range.high, 5);
}

TEST(ChooseRange, OfPercentileLeavesOutliersOut) {
  const RealRange range = choose_range(histogram_of(with_outliers()), Calibration::percentile, 255, false);
  EXPECT_LT(range.high, 10);
  EXPECT_GT(range.high, 3);
  EXPECT_LT(range.low, -3);
}

TEST(ChooseRange, OfMseHasALowerErrorThanMinMax) {
  const std::vector<float> numbers = with_outliers();
  const Histogram histogram = histogram_of(numbers);
  const double wide = squared_error(numbers, choose_range(histogram, Calibration::min_max, 255, false));
  const double chosen = squared_error(numbers, choose_range(histogram, Calibration::mse, 255, false));
  EXPECT_LT(chosen, wide);
}

TEST(ChooseRange, OfMseKeepsAllOfAnEvenDistribution) {
  std::vector<float> numbers;
  for (int i = 0; i <= 10000; ++i) numbers.push_back(static_cast<float>(i) / 10000);
  EXPECT_GT(choose_range(histogram_of(numbers), Calibration::mse, 255, false).high, 0.98);
}

TEST(ChooseRange, OfEntropyLeavesOutliersOut) {
  const RealRange range = choose_range(histogram_of(with_outliers()), Calibration::entropy, 255, true);
  EXPECT_LT(range.high, 20);
  EXPECT_GT(range.high, 1);
}

TEST(ChooseRange, IsTheSameOnBothSidesWhereSymmetric) {
  for (const std::string& name : calibration_names()) {
    const RealRange range = choose_range(histogram_of({-1, 0.5f, 3}), parse_calibration(name), 254, true);
    EXPECT_EQ(range.low, -range.high) << name;
  }
}

TEST(ChooseRange, BearsOneNumberAndNone) {
  for (const std::string& name : calibration_names()) {
    EXPECT_EQ(choose_range(histogram_of({4}), parse_calibration(name), 255, false).high, 4) << name;
    EXPECT_EQ(choose_range(histogram_of({0, 0}), parse_calibration(name), 255, false).high, 0) << name;
    EXPECT_EQ(choose_range(empty_histogram({}), parse_calibration(name), 255, false).high, 0) << name;
  }
}

TEST(ScaleOf, MapsZeroToAWholeNumber) {
  const Scale scale = scale_of({-1, 3}, 0, 255, false);
  EXPECT_FLOAT_EQ(scale.scale, 4.0f / 255);
  EXPECT_EQ(scale.zero_point, 64);  // 63.75
}

TEST(ScaleOf, OfSignedSymmetricNumbersHasTheZeroPointZero) {
  const Scale scale = scale_of({-1, 3}, -128, 127, true);
  EXPECT_FLOAT_EQ(scale.scale, 3.0f / 127);
  EXPECT_EQ(scale.zero_point, 0);
}

TEST(ScaleOf, OfNoWidthIsOne) {
  EXPECT_EQ(scale_of({0, 0}, 0, 255, false).scale, 1);
  EXPECT_EQ(scale_of({}, -128, 127, true).scale, 1);
}

TEST(ParseCalibration, NamesTheNearest) {
  try {
    parse_calibration("minmax");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("min_max"));
  }
}

}  // namespace
}  // namespace weft::quantize
