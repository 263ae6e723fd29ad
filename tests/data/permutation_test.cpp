#include "weft/data/dataset/permutation.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace weft::data {
namespace {

std::vector<int64_t> order_of(int64_t size, uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<int64_t> order;
  for (int64_t position = 0; position < size; ++position) order.push_back(permutation[position]);
  return order;
}

TEST(Permutation, TakesEachItemOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 6, 7, 16, 17, 99, 100, 101, 1000, 60000}) {
    std::vector<bool> seen(static_cast<size_t>(size), false);
    for (const int64_t item : order_of(size, 42)) {
      ASSERT_TRUE(item >= 0 && item < size);
      ASSERT_FALSE(seen[static_cast<size_t>(item)]) << size;
      seen[static_cast<size_t>(item)] = true;
    }
  }
}

TEST(Permutation, DependsOnTheKey) {
  EXPECT_EQ(order_of(1000, 1), order_of(1000, 1));
  EXPECT_NE(order_of(1000, 1), order_of(1000, 2));
}

TEST(Permutation, OrdersOfFourItemsAreAboutEquallyFrequent) {
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kDraws = 24000;
  for (uint64_t key = 0; key < kDraws; ++key) ++counts[order_of(4, key * 7919)];
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom, 0.1 % of fair draws exceed it
}

TEST(Permutation, EachItemVisitsEachPositionAboutEquallyOften) {
  constexpr int64_t kPermuted = 10;
  constexpr int kDraws = 20000;
  std::vector<int> counts(kPermuted * kPermuted);
  for (uint64_t key = 0; key < kDraws; ++key) {
    const auto order = order_of(kPermuted, key);
    for (int64_t position = 0; position < kPermuted; ++position)
      ++counts[static_cast<size_t>(position * kPermuted + order[static_cast<size_t>(position)])];
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 2000.0) * (count - 2000.0) / 2000.0;
  EXPECT_LT(chi_square, 126.1);  // 81 degrees of freedom, 0.1 %
}

TEST(Permutation, NeighboursAreTornApart) {
  const auto order = order_of(60000, 3);
  int neighbours = 0;
  for (size_t at = 1; at < order.size(); ++at) neighbours += order[at] == order[at - 1] + 1;
  EXPECT_LT(neighbours, 10);  // one is expected of a fair shuffle
}

}  // namespace
}  // namespace weft::data
