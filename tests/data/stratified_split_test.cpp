#include "weft/data/dataset/stratified_split.h"

#include <gtest/gtest.h>

#include <map>

namespace weft::data {
namespace {

std::map<int32_t, int> tests_by_stratum(const std::vector<int32_t>& strata, double fraction) {
  std::map<int32_t, int> counts;
  const std::vector<bool> is_test = stratified_split(strata, fraction, 7);
  for (size_t at = 0; at < strata.size(); ++at) counts[strata[at]] += is_test[at];
  return counts;
}

TEST(StratifiedSplit, TakesTheSameShareOfEveryClass) {
  std::vector<int32_t> strata;
  for (int32_t at = 0; at < 1000; ++at) strata.push_back(at % 10 == 0 ? 1 : 0);
  EXPECT_EQ(tests_by_stratum(strata, 0.2), (std::map<int32_t, int>{{0, 180}, {1, 20}}));
}

TEST(StratifiedSplit, LeavesOneOfEachForTraining) {
  EXPECT_EQ(tests_by_stratum({4, 5, 5}, 0.9), (std::map<int32_t, int>{{4, 0}, {5, 1}}));
}

TEST(StratifiedSplit, DependsOnTheSeedAlone) {
  const std::vector<int32_t> strata(100, 0);
  EXPECT_EQ(stratified_split(strata, 0.3, 1), stratified_split(strata, 0.3, 1));
  EXPECT_NE(stratified_split(strata, 0.3, 1), stratified_split(strata, 0.3, 2));
}

}  // namespace
}  // namespace weft::data
