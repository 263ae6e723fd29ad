#include "weft/comm/links/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/comm/two_switches.h"
#include "weft/comm/links/choose.h"
#include "weft/comm/links/cost.h"
#include "weft/comm/schedules/broadcast.h"
#include "weft/comm/schedules/reduce_scatter.h"

namespace weft::comm {
namespace {

constexpr double kSummedPerSecond = 2e9;

struct Case {
  Algorithm algorithm;
  int size;
  int64_t elements, chunk;
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name = std::string(name_of(info.param.algorithm)) + "_" + std::to_string(info.param.size) + "_" +
                     std::to_string(info.param.elements);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

EstimatedCollective estimated(const Case& of) {
  return {.algorithm = of.algorithm,
          .size = of.size,
          .elements = of.elements,
          .chunk = of.chunk,
          .element_bytes = 4,
          .summed_elements_per_second = kSummedPerSecond};
}

class EstimateOfAllReduce : public testing::TestWithParam<Case> {};

TEST_P(EstimateOfAllReduce, IsThatOfTheSimulation) {
  const Case& of = GetParam();
  const Links links(LinkCosts{});
  std::vector<Schedule> schedules;
  for (int member = 0; member < of.size; ++member)
    schedules.push_back(make_schedule(of.algorithm, member, of.size, of.elements, of.chunk));
  const Estimate estimate = estimate_all_reduce(estimated(of), links);
  EXPECT_NEAR(estimate.seconds / simulate(schedules, links, kSummedPerSecond, 4), 1, 0.2);
  EXPECT_NEAR(estimate.link_seconds / busiest_seconds(schedules, links, 4), 1, 0.2);
}

INSTANTIATE_TEST_SUITE_P(
    Few, EstimateOfAllReduce,
    testing::Values(Case{Algorithm::ring, 16, 1000, 250}, Case{Algorithm::ring, 64, 1000, 250},
                    Case{Algorithm::halving_doubling, 16, 1000, 0}, Case{Algorithm::halving_doubling, 64, 1000, 0},
                    Case{Algorithm::recursive_doubling, 16, 1000, 0}, Case{Algorithm::recursive_doubling, 64, 1000, 0},
                    Case{Algorithm::recursive_doubling, 48, 1000, 0}, Case{Algorithm::direct_exchange, 16, 1000, 0},
                    Case{Algorithm::direct_exchange, 64, 1000, 0}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(Many, EstimateOfAllReduce,
                         testing::Values(Case{Algorithm::ring, 16, 4'000'000, 65536},
                                         Case{Algorithm::ring, 64, 4'000'000, 65536},
                                         Case{Algorithm::halving_doubling, 16, 4'000'000, 0},
                                         Case{Algorithm::halving_doubling, 64, 4'000'000, 0},
                                         Case{Algorithm::recursive_doubling, 16, 4'000'000, 0},
                                         Case{Algorithm::double_binary_tree, 15, 4'000'000, 16384},
                                         Case{Algorithm::double_binary_tree, 64, 4'000'000, 16384},
                                         Case{Algorithm::direct_exchange, 16, 4'000'000, 0},
                                         Case{Algorithm::direct_exchange, 64, 4'000'000, 0}),
                         name_of_case);

class EstimateOfPieces : public testing::TestWithParam<Case> {
 protected:
  std::vector<int64_t> begins() const {
    std::vector<int64_t> begins;
    for (int member = 0; member <= GetParam().size; ++member)
      begins.push_back(GetParam().elements / GetParam().size * member);
    return begins;
  }
  static double simulated(const std::vector<Schedule>& schedules) {
    return simulate(schedules, Links(LinkCosts{}), kSummedPerSecond, 4);
  }
};

TEST_P(EstimateOfPieces, OfAGatherIsThatOfTheSimulation) {
  std::vector<Schedule> schedules;
  for (int member = 0; member < GetParam().size; ++member)
    schedules.push_back(make_gather_schedule(GetParam().algorithm, member, begins(), GetParam().chunk));
  const Estimate estimate = estimate_gather(estimated(GetParam()), Links(LinkCosts{}));
  EXPECT_NEAR(estimate.seconds / simulated(schedules), 1, 0.2);
}

TEST_P(EstimateOfPieces, OfAReduceScatterIsThatOfTheSimulation) {
  std::vector<Schedule> schedules;
  for (int member = 0; member < GetParam().size; ++member)
    schedules.push_back(make_reduce_scatter_schedule(GetParam().algorithm, member, begins(), GetParam().chunk));
  const Estimate estimate = estimate_reduce_scatter(estimated(GetParam()), Links(LinkCosts{}));
  EXPECT_NEAR(estimate.seconds / simulated(schedules), 1, 0.2);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EstimateOfPieces,
                         testing::Values(Case{Algorithm::ring, 32, 3'200'000, 25'000},
                                         Case{Algorithm::recursive_doubling, 32, 3'200'000, 0},
                                         Case{Algorithm::recursive_doubling, 48, 4800, 0},
                                         Case{Algorithm::direct_exchange, 32, 3'200'000, 0}),
                         name_of_case);

class EstimateOfTrees : public testing::TestWithParam<Case> {};

TEST_P(EstimateOfTrees, OfABroadcastIsThatOfTheSimulation) {
  const Case& of = GetParam();
  const Links links(LinkCosts{});
  std::vector<Schedule> schedules;
  for (int member = 0; member < of.size; ++member)
    schedules.push_back(make_broadcast_schedule(of.algorithm, member, of.size, /*root=*/0, of.elements, of.chunk));
  EXPECT_NEAR(estimate_broadcast(estimated(of), links).seconds / simulate(schedules, links, kSummedPerSecond, 4), 1,
              0.2);
}

TEST_P(EstimateOfTrees, OfAReductionIsThatOfTheSimulation) {
  const Case& of = GetParam();
  const Links links(LinkCosts{});
  std::vector<Schedule> schedules;
  for (int member = 0; member < of.size; ++member)
    schedules.push_back(make_reduction_schedule(of.algorithm, member, of.size, /*root=*/0, of.elements, of.chunk));
  EXPECT_NEAR(estimate_reduction(estimated(of), links).seconds / simulate(schedules, links, kSummedPerSecond, 4), 1,
              0.2);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EstimateOfTrees,
                         testing::Values(Case{Algorithm::chain, 16, 1'000'000, 16384},
                                         Case{Algorithm::binomial_tree, 32, 1000, 1000},
                                         Case{Algorithm::binomial_tree, 32, 1'000'000, 65536},
                                         Case{Algorithm::direct_exchange, 16, 100'000, 0}),
                         name_of_case);

TEST(EstimateOfGroups, IsThatOfTheSimulation) {
  const Links links = Links(8, kFar, two_switches(8, 50e6)).reordered({0, 2, 4, 6, 1, 3, 5, 7});  // groups together
  std::vector<Schedule> schedules;
  for (int member = 0; member < 8; ++member)
    schedules.push_back(make_schedule(Algorithm::hierarchical, member, 8, 1'000'000, 65536, 2));
  const Case of{Algorithm::hierarchical, 8, 1'000'000, 65536};
  EXPECT_NEAR(estimate_all_reduce(estimated(of), links).seconds / simulate(schedules, links, kSummedPerSecond, 4), 1,
              0.3);
}

TEST(EstimateForThousands, AFewElementsGrowAsTheLogarithmOfTheMembers) {
  const Links links(LinkCosts{});
  const auto seconds = [&](int size) { return choose_algorithm(size, 1024, 4, links, 8e9).seconds; };
  EXPECT_NEAR(seconds(4096) / seconds(128), 12.0 / 7, 0.1);
}

TEST(EstimateForThousands, ManyElementsComeNearTheLeastTraffic) {
  const LinkCosts link{.latency_seconds = 3e-6, .bytes_per_second = 12e9, .message_seconds = 5e-7};
  constexpr int64_t kElements = 25'000'000;
  for (const int size : {128, 1024, 4096}) {
    const double least = 2.0 * (size - 1) / size * kElements * 4 / link.bytes_per_second;
    EXPECT_LT(choose_algorithm(size, kElements, 4, Links(link), 1e12).seconds, 1.1 * least) << size;
  }
}

TEST(EstimateForThousands, ChoosesWithoutSimulatingEachMessage) {
  // A ring of 4,096 members has 67 million actions.
  const Choice choice = choose_algorithm(4096, 1 << 28, 4, Links(LinkCosts{}), 8e9);
  EXPECT_GT(choice.seconds, 0);
}

}  // namespace
}  // namespace weft::comm
