#include "weft/train/ranks/assign_grains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "weft/base/rng.h"

namespace weft::train {
namespace {

using testing::ElementsAre;

/// The smallest largest time that any assignment has, of all that there are.
double best_time(int64_t grains, const std::vector<double>& seconds, size_t rank = 0) {
  const auto left = static_cast<int64_t>(seconds.size() - rank) - 1;
  if (left == 0) return static_cast<double>(grains) * seconds[rank];
  double best = std::numeric_limits<double>::infinity();
  for (int64_t own = 1; own + left <= grains; ++own)
    best =
        std::min(best, std::max(static_cast<double>(own) * seconds[rank], best_time(grains - own, seconds, rank + 1)));
  return best;
}

TEST(AssignGrains, NoOtherAssignmentIsDoneEarlier) {
  RandomStream random(1, 0);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> seconds(1 + random.below(4));
    for (double& one : seconds) one = 0.1 + random.below(40) / 10.0;
    const auto grains = static_cast<int64_t>(seconds.size() + random.below(14));
    const std::vector<int64_t> assigned = assign_grains(grains, seconds);
    EXPECT_EQ(std::accumulate(assigned.begin(), assigned.end(), int64_t{0}), grains);
    for (const int64_t own : assigned) EXPECT_GE(own, 1);
    EXPECT_DOUBLE_EQ(largest_time(assigned, seconds), best_time(grains, seconds)) << trial;
  }
}

TEST(AssignGrains, EqualRanksTakeAsManyAsTheirNeighbours) {
  EXPECT_THAT(assign_grains(16, std::vector<double>(4, 0.3)), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(assign_grains(5, std::vector<double>(3, 0.3)), ElementsAre(2, 2, 1));
}

TEST(AssignGrains, ARankHoweverSlowTakesOne) {
  EXPECT_THAT(assign_grains(16, std::vector<double>{1, 1e6}), ElementsAre(15, 1));
  EXPECT_THAT(assign_grains(2, std::vector<double>{1, 1e6}), ElementsAre(1, 1));
}

TEST(AssignGrains, HalfTheSpeedIsHalfTheShare) {
  EXPECT_THAT(assign_grains(24, std::vector<double>{1, 2}), ElementsAre(16, 8));
  EXPECT_THAT(assign_grains(16, std::vector<double>{1, 2}), ElementsAre(11, 5)) << "11 beside 12 for 10 and 6";
}

}  // namespace
}  // namespace weft::train
