#include "weft/predict/traffic.h"

#include <gtest/gtest.h>

namespace weft::predict {
namespace {

double between(const ExchangedByAxis& exchanged, const Strategy& strategy) {
  return traffic_of(exchanged, strategy).at(0).bytes;
}
double within(const ExchangedByAxis& exchanged, const Strategy& strategy) {
  return traffic_of(exchanged, strategy).back().bytes;
}

TEST(Traffic, OfHostsIsThatOfTheirRanksTogether) {
  const ExchangedByAxis reduced{{"data", {.reduced = 1000}}};
  const Strategy strategy{.ranks = 8, .ranks_per_host = 2};
  ASSERT_EQ(traffic_of(reduced, strategy).size(), 2u);
  EXPECT_NEAR(between(reduced, strategy), 2 * 0.75 * 1000, 1e-9);
  EXPECT_NEAR(within(reduced, strategy), 2 * 0.5 * 1000, 1e-9);
  EXPECT_TRUE(traffic_of(reduced, {.ranks = 1}).empty());
}

TEST(Traffic, OfLayersThatAHostSharesStaysWithinIt) {
  const ExchangedByAxis layers{{"tensor", {.reduced = 1000}}};
  const Strategy strategy{.ranks = 8, .ranks_per_host = 4, .tensor = 4};
  EXPECT_EQ(between(layers, strategy), 0);
  EXPECT_NEAR(within(layers, strategy), 2 * 0.75 * 1000, 1e-9);
  const Strategy wide{.ranks = 8, .ranks_per_host = 4, .tensor = 8};
  EXPECT_NEAR(between(layers, wide), 2 * 0.5 * 1000, 1e-9);
}

TEST(Traffic, GradientsOfSharedLayersCrossBetweenTheRanksThatHaveThem) {
  // Four pairs, one rank of each on each host: nothing of them stays within a host.
  const ExchangedByAxis gradients{{"data", {.reduced = 1000}}};
  const Strategy strategy{.ranks = 8, .ranks_per_host = 4, .tensor = 4};
  EXPECT_NEAR(between(gradients, strategy), 4 * 2 * 0.5 * 1000, 1e-9);
  EXPECT_EQ(within(gradients, strategy), 0);
}

TEST(Traffic, OfWhatIsGatheredIsThatOfTheRanksAlongItsAxis) {
  const ExchangedByAxis weights{{"data", {.gathered = 100}}};
  const Strategy strategy{.ranks = 8, .ranks_per_host = 4, .tensor = 2};
  // Two groups of four, of which each host has two members.
  EXPECT_NEAR(between(weights, strategy), 2 * 0.5 * 4 * 100, 1e-9);
  EXPECT_NEAR(within(weights, strategy), 0.5 * 2 * 100, 1e-9);
}

TEST(Traffic, OfWhatIsDealtIsAllButWhatStays) {
  const ExchangedByAxis tokens{{"data", {.dealt = 800}}};
  const Strategy strategy{.ranks = 8, .ranks_per_host = 4};
  EXPECT_NEAR(between(tokens, strategy), 4 * 400, 1e-9) << "four ranks send half of what they have";
  EXPECT_NEAR(within(tokens, strategy), 300, 1e-9);
}

TEST(Traffic, OfAPipelineIsWhatStagesSend) {
  const ExchangedByAxis messages{{"pipeline", {.sent = 700}}};
  const std::vector<LinkTraffic> one_host = traffic_of(messages, {.ranks = 2, .ranks_per_host = 2, .pipeline = 2});
  ASSERT_EQ(one_host.size(), 1u);
  EXPECT_NEAR(one_host[0].bytes, 700, 1e-9);
  const Strategy stage_per_host{.ranks = 8, .ranks_per_host = 4, .pipeline = 2};
  EXPECT_NEAR(between(messages, stage_per_host), 4 * 700, 1e-9);
  EXPECT_EQ(within(messages, stage_per_host), 0);
}

}  // namespace
}  // namespace weft::predict
