#include "weft/predict/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/rng.h"

namespace weft::predict {
namespace {

/// Gradients of `dimensions` numbers, each the truth plus noise whose variance falls with the batch.
std::vector<GradientNorms> draw(double truth, double noise, int64_t steps, uint64_t seed) {
  constexpr int kDimensions = 400;
  RandomStream random(seed);
  std::vector<GradientNorms> norms;
  for (int64_t step = 0; step < steps; ++step) {
    GradientNorms of{.step = step, .small_batch = 16, .large_batch = 128};
    const auto square = [&](double batch) {
      double sum = 0;
      for (int at = 0; at < kDimensions; ++at) {
        const double value = truth / std::sqrt(kDimensions) +
                             std::sqrt(noise / kDimensions / batch) * static_cast<double>(random.normal());
        sum += value * value;
      }
      return sum;
    };
    of.small_square = square(of.small_batch);
    of.large_square = square(of.large_batch);
    norms.push_back(of);
  }
  return norms;
}

TEST(NoiseScale, OfDrawnGradientsIsThatWhichTheyWereDrawnWith) {
  // |G|^2 = 0.25, tr(S) = 100: a scale of 400 samples.
  const std::optional<NoiseScale> found = estimate_noise_scale(draw(0.5, 100, 2000, 1));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->gradient_square, 0.25, 0.05);
  EXPECT_NEAR(found->noise, 100, 3);
  EXPECT_NEAR(found->scale.expected, 400, 80);
}

TEST(NoiseScale, ItsIntervalHoldsTheTruthInMostDraws) {
  int held = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) held += estimate_noise_scale(draw(0.5, 100, 300, seed))->scale.holds(400);
  EXPECT_GE(held, 33) << "of 50, of which 40 are expected";
  EXPECT_LE(held, 48);
}

TEST(NoiseScale, WhereTheGradientDrownsItHasNoUpperEnd) {
  const std::optional<NoiseScale> found = estimate_noise_scale(draw(0.0, 100, 100, 3));
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::isinf(found->scale.high));
  EXPECT_GT(found->scale.low, 400);
}

TEST(NoiseScale, OneMeasurementOrEqualBatchesSayNothing) {
  EXPECT_FALSE(estimate_noise_scale(draw(0.5, 100, 1, 1)));
  EXPECT_FALSE(estimate_noise_scale({{.small_batch = 8, .small_square = 1, .large_batch = 8, .large_square = 1},
                                     {.small_batch = 8, .small_square = 1, .large_batch = 8, .large_square = 1}}));
}

TEST(NoiseScale, StepsFallAsTheBatchGrowsUntilTheScale) {
  EXPECT_NEAR(steps_factor(1000, 10, 20), 0.5, 0.01) << "far below the scale: half as many";
  EXPECT_NEAR(steps_factor(1000, 1000, 2000), 0.75, 1e-9);
  EXPECT_GT(steps_factor(1000, 100'000, 200'000), 0.99) << "far above: as many";
}

TEST(NoiseScale, ItsDescriptionSaysHowFarTheBatchCanGrow) {
  const std::string text = describe_noise_scale(draw(0.5, 100, 1000, 1), 128);
  EXPECT_NE(text.find("The batch can grow to about"), std::string::npos) << text;
  EXPECT_EQ(describe_noise_scale({}, 128), "");
}

}  // namespace
}  // namespace weft::predict
