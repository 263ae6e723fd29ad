// Weights of few bits: rounding to nearest, by second moments, learned; equalisation and correction of biases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/rng.h"
#include "weft/quantize/adaround.h"
#include "weft/quantize/bias_correction.h"
#include "weft/quantize/equalization.h"
#include "weft/quantize/group_weights.h"

namespace weft::quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

Matrix random_matrix(int64_t rows, int64_t columns, uint64_t seed) {
  RandomStream stream(seed);
  Matrix matrix{rows, columns, {}};
  for (int64_t at = 0; at < rows * columns; ++at) matrix.numbers.push_back(stream.normal());
  return matrix;
}

/// Inputs that go together, as those of a network do: all have a part in common, and a mean.
std::vector<std::vector<float>> correlated_samples(int64_t size, int count) {
  RandomStream stream(17);
  std::vector<std::vector<float>> samples;
  for (int s = 0; s < count; ++s) {
    const float common = stream.normal();
    std::vector<float> sample;
    for (int64_t at = 0; at < size; ++at) sample.push_back(1 + 2 * common + 0.5f * stream.normal());
    samples.push_back(sample);
  }
  return samples;
}

SecondMoments moments_of(const std::vector<std::vector<float>>& samples) {
  SecondMoments moments(static_cast<int64_t>(samples[0].size()));
  for (const auto& sample : samples) moments.add(sample);
  return moments;
}

/// The mean squared error of the outputs, sample by sample.
double measured_error(const IntegerMatrix& quantized, const Matrix& weights,
                      const std::vector<std::vector<float>>& samples) {
  const Matrix reals = quantized.reals();
  double error = 0;
  for (const auto& sample : samples)
    for (int64_t row = 0; row < weights.rows; ++row) {
      double difference = 0;
      for (int64_t c = 0; c < weights.columns; ++c)
        difference += (static_cast<double>(weights.row(row)[c]) - static_cast<double>(reals.row(row)[c])) *
                      static_cast<double>(sample[static_cast<size_t>(c)]);
      error += difference * difference;
    }
  return error / static_cast<double>(samples.size()) / static_cast<double>(weights.rows);
}

TEST(NearestInteger, StaysWithinTheBits) {
  EXPECT_EQ(nearest_integer(1000, 1, 8), 127);
  EXPECT_EQ(nearest_integer(-1000, 1, 8), -127);
  EXPECT_EQ(nearest_integer(-1000, 1, 4), -7);
  EXPECT_EQ(nearest_integer(1000, 1, 2), 1);
  EXPECT_EQ(nearest_integer(-1000, 1, 2), -2);
}

TEST(ScalesOf, AreOfEachRowOrOfAll) {
  const Matrix weights{2, 2, {1, -127, 254, 3}};
  EXPECT_THAT(scales_of(weights, 8, 2, true, false).scales, ElementsAre(FloatEq(1), FloatEq(2)));
  EXPECT_THAT(scales_of(weights, 8, 2, false, false).scales, ElementsAre(FloatEq(2), FloatEq(2)));
}

TEST(ScalesOf, AreOfRunsOfColumns) {
  const IntegerMatrix quantized = scales_of({1, 5, {7, 0, 14, 1, 21}}, 4, 2, true, false);
  EXPECT_EQ(quantized.groups(), 3);
  EXPECT_THAT(quantized.scales, ElementsAre(FloatEq(1), FloatEq(2), FloatEq(3)));
  EXPECT_EQ(quantized.scale_at(0, 3), 2);
}

TEST(ScalesOf, SearchedMakeALowerErrorThanTheLargestMagnitude) {
  Matrix weights = random_matrix(1, 256, 5);
  weights.numbers[0] = 12;
  const auto error_of = [&](bool searches) {
    IntegerMatrix quantized = scales_of(weights, 4, 256, true, searches);
    round_to_nearest(quantized, weights, 4);
    double error = 0;
    for (size_t at = 0; at < weights.numbers.size(); ++at)
      error += std::pow(static_cast<double>(quantized.reals().numbers[at] - weights.numbers[at]), 2);
    return error;
  };
  EXPECT_LT(error_of(true), error_of(false));
}

TEST(RoundToNearest, IsWithinHalfAStep) {
  const Matrix weights = random_matrix(4, 33, 1);
  IntegerMatrix quantized = scales_of(weights, 8, 33, true, false);
  round_to_nearest(quantized, weights, 8);
  const Matrix reals = quantized.reals();
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t column = 0; column < 33; ++column)
      EXPECT_LE(std::fabs(reals.row(row)[column] - weights.row(row)[column]),
                0.5001f * quantized.scale_at(row, column));
}

TEST(OutputError, IsWhatSamplesMeasure) {
  const Matrix weights = random_matrix(3, 12, 2);
  const auto samples = correlated_samples(12, 50);
  IntegerMatrix quantized = scales_of(weights, 4, 12, true, false);
  round_to_nearest(quantized, weights, 4);
  const double measured = measured_error(quantized, weights, samples);
  EXPECT_NEAR(output_error(quantized, weights, moments_of(samples)), measured, 1e-6 * measured);
}

TEST(RoundByMoments, MakesALowerOutputErrorThanNearest) {
  const Matrix weights = random_matrix(16, 64, 3);
  const auto samples = correlated_samples(64, 400);
  const SecondMoments moments = moments_of(samples);
  for (const int bits : {4, 2}) {
    IntegerMatrix nearest = scales_of(weights, bits, 16, true, true), chosen = nearest;
    round_to_nearest(nearest, weights, bits);
    round_by_moments(chosen, weights, moments, bits);
    EXPECT_LT(measured_error(chosen, weights, samples), 0.5 * measured_error(nearest, weights, samples)) << bits;
  }
}

TEST(RoundByMoments, OfIndependentInputsIsRoundingToNearest) {
  const Matrix weights = random_matrix(5, 8, 4);
  SecondMoments moments(8);
  for (int64_t input = 0; input < 8; ++input) {
    std::vector<float> sample(8, 0);
    sample[static_cast<size_t>(input)] = 1;
    moments.add(sample);
  }
  IntegerMatrix nearest = scales_of(weights, 4, 8, true, false), chosen = nearest;
  round_to_nearest(nearest, weights, 4);
  round_by_moments(chosen, weights, moments, 4);
  EXPECT_EQ(chosen.integers, nearest.integers);
}

TEST(RoundByMoments, BearsInputsThatAreAlwaysZero) {
  const Matrix weights = random_matrix(2, 6, 6);
  SecondMoments moments(6);
  moments.add(std::vector<float>{1, 0, 2, 0, 0, 0});
  IntegerMatrix chosen = scales_of(weights, 4, 6, true, false);
  round_by_moments(chosen, weights, moments, 4);
  for (const float number : chosen.reals().numbers) EXPECT_TRUE(std::isfinite(number));
}

TEST(RoundAdaptively, MakesALowerOutputErrorThanNearest) {
  const Matrix weights = random_matrix(8, 32, 7);
  const auto samples = correlated_samples(32, 300);
  IntegerMatrix nearest = scales_of(weights, 4, 32, true, false), learned = nearest;
  round_to_nearest(nearest, weights, 4);
  round_adaptively(learned, weights, moments_of(samples), 4);
  EXPECT_LT(measured_error(learned, weights, samples), 0.5 * measured_error(nearest, weights, samples));
}

TEST(RoundAdaptively, RoundsEachWeightUpOrDown) {
  const Matrix weights = random_matrix(4, 16, 8);
  IntegerMatrix learned = scales_of(weights, 8, 16, true, false);
  round_adaptively(learned, weights, moments_of(correlated_samples(16, 100)), 8);
  const Matrix reals = learned.reals();
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t column = 0; column < 16; ++column)
      EXPECT_LE(std::fabs(reals.row(row)[column] - weights.row(row)[column]), 1.0001f * learned.scale_at(row, column));
}

TEST(RoundAdaptively, KeepsNearestWhereNothingWasSeen) {
  const Matrix weights = random_matrix(2, 5, 9);
  IntegerMatrix nearest = scales_of(weights, 8, 5, true, false), learned = nearest;
  round_to_nearest(nearest, weights, 8);
  round_adaptively(learned, weights, SecondMoments(5), 8);
  EXPECT_EQ(learned.integers, nearest.integers);
}

TEST(EqualizingScales, MakeBothRangesAlike) {
  const std::vector<float> scales = equalizing_scales({8, 1}, {2, 4});
  EXPECT_THAT(scales, ElementsAre(FloatEq(2), FloatEq(0.5f)));
  EXPECT_FLOAT_EQ(8 / scales[0], 2 * scales[0]);
}

TEST(EqualizingScales, LeaveChannelsOfZerosAlone) { EXPECT_THAT(equalizing_scales({0, 3}, {2, 0}), ElementsAre(1, 1)); }

TEST(BiasCorrection, TakesBackTheMeanOfTheError) {
  const Matrix weights = random_matrix(3, 20, 10);
  const auto samples = correlated_samples(20, 200);
  IntegerMatrix quantized = scales_of(weights, 4, 20, true, false);
  round_to_nearest(quantized, weights, 4);
  const std::vector<float> correction = bias_correction(quantized, weights, moments_of(samples));
  const Matrix reals = quantized.reals();
  for (int64_t row = 0; row < 3; ++row) {
    double mean = 0;
    for (const auto& sample : samples)
      for (int64_t c = 0; c < 20; ++c)
        mean += static_cast<double>(weights.row(row)[c] - reals.row(row)[c]) *
                static_cast<double>(sample[static_cast<size_t>(c)]) / static_cast<double>(samples.size());
    EXPECT_NEAR(static_cast<double>(correction[static_cast<size_t>(row)]), mean, 1e-4);
  }
}

}  // namespace
}  // namespace weft::quantize
