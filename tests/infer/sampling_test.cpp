// Draws of tokens: what temperature, top-k and top-p leave to draw from.
#include "weft/infer/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "weft/base/error.h"

namespace weft::infer {
namespace {

const std::vector<float> kProbabilities{0.1f, 0.4f, 0.05f, 0.3f, 0.15f};

/// The share of each token among many draws.
std::map<int64_t, double> shares(const SamplingOptions& options) {
  constexpr int kDraws = 20000;
  RandomStream random(7);
  std::map<int64_t, double> result;
  for (int draw = 0; draw < kDraws; ++draw) result[sample(kProbabilities, options, random)] += 1.0 / kDraws;
  return result;
}

TEST(Sampling, DrawsByProbability) {
  const auto drawn = shares({.temperature = 1});
  for (size_t at = 0; at < kProbabilities.size(); ++at)
    EXPECT_NEAR(drawn.at(static_cast<int64_t>(at)), static_cast<double>(kProbabilities[at]), 0.015) << at;
}

TEST(Sampling, TakesTheLikeliestAtTemperatureZero) { EXPECT_EQ(shares({.temperature = 0}).size(), 1u); }

TEST(Sampling, SharpensWithALowTemperature) {
  double sum = 0;
  for (const float p : kProbabilities) sum += std::pow(static_cast<double>(p), 2);
  EXPECT_NEAR(shares({.temperature = 0.5}).at(1), 0.16 / sum, 0.015);
}

TEST(Sampling, DrawsAmongTheLikeliest) {
  const auto drawn = shares({.temperature = 1, .top_k = 2});
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_NEAR(drawn.at(1), 0.4 / 0.7, 0.015);
  EXPECT_NEAR(drawn.at(3), 0.3 / 0.7, 0.015);
}

TEST(Sampling, DrawsAmongTheFewestThatReachAProbability) {
  const auto drawn = shares({.temperature = 1, .top_p = 0.75});  // 0.4 and 0.3 fall short
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_NEAR(drawn.at(4), 0.15 / 0.85, 0.015);
}

TEST(Sampling, OneThatReachesTheProbabilityStandsAlone) {
  EXPECT_EQ(shares({.temperature = 1, .top_p = 0.39}).size(), 1u);
}

TEST(Sampling, CountsTheProbabilityAmongTheLikeliest) {
  // Of 0.4 and 0.3 alone, the first has 0.57.
  EXPECT_EQ(shares({.temperature = 1, .top_k = 2, .top_p = 0.55}).size(), 1u);
}

TEST(Sampling, OfEqualOnesTheFirstStay) {
  const std::vector<float> equal(4, 0.25f);
  RandomStream random(1);
  for (int draw = 0; draw < 100; ++draw) EXPECT_LT(sample(equal, {.temperature = 1, .top_k = 2}, random), 2);
}

TEST(Sampling, RefusesNaN) {
  RandomStream random(7);
  for (const double temperature : {0.0, 1.0})
    for (const std::vector<float>& probabilities : {std::vector<float>{NAN, 0.5f}, {0.5f, NAN}}) try {
        sample(probabilities, {.temperature = temperature}, random);
        FAIL() << "drew from NaN";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::numeric);
      }
}

}  // namespace
}  // namespace weft::infer
