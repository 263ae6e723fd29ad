// The largest and smallest elements against PyTorch.
#include <limits>

#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

using reference_tests::values_of;

class TopK : public ValuesTest {
 protected:
  std::vector<int64_t> places_of(ValueId indices) const { return values_of<int64_t>(value_of(indices)); }
};

TEST_F(TopK, LargestOfEachRow) {
  // x = leaf(ramp(2, 5)); v, i = x.topk(2, 1)
  const ValueId x = given(ramp({2, 5}));
  const auto [values, indices] = top_k(graph_, x, 2);
  expect_value(values, {2, 2}, {1, 0.25, 1.5, 0.75});
  EXPECT_EQ(places_of(indices), (std::vector<int64_t>{2, 4, 0, 2}));
  expect_gradients(values, {x}, {{0, 0, -1.5, 0, -0.25, 1, 0, -1, 0, 0}});
}

TEST_F(TopK, SmallestOfEachColumn) {
  // x = leaf(ramp(4, 2)); v, i = x.topk(3, 0, largest=False)
  const ValueId x = given(ramp({4, 2}));
  const auto [values, indices] = top_k(graph_, x, 3, 0, false);
  expect_value(values, {3, 2}, {-1.5, -1, -0.5, -0.25, 0.25, 0.75});
  EXPECT_EQ(places_of(indices), (std::vector<int64_t>{0, 1, 3, 0, 2, 3}));
  expect_gradients(values, {x}, {{-1.5, -1, 0, -0.25, 0.25, 0, 1, 1.5}});
}

TEST_F(TopK, OfEqualOnesTheLowerPlaceComesFirst) {
  const ValueId x = given(floats({6}, {1, 3, 1, 3, 2, 1}));
  EXPECT_EQ(places_of(top_k(graph_, x, 6).indices), (std::vector<int64_t>{1, 3, 4, 0, 2, 5}));
  EXPECT_EQ(places_of(top_k(graph_, x, 6, 0, false).indices), (std::vector<int64_t>{0, 2, 5, 4, 1, 3}));
}

TEST_F(TopK, NotANumberCountsAsTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const ValueId x = given(floats({5}, {1, nan, infinity, -infinity, nan}));
  EXPECT_EQ(places_of(top_k(graph_, x, 5).indices), (std::vector<int64_t>{1, 4, 2, 0, 3}));
  EXPECT_EQ(places_of(top_k(graph_, x, 5, 0, false).indices), (std::vector<int64_t>{3, 0, 2, 1, 4}));
}

// A double would not tell them apart.
TEST_F(TopK, TellsLargeIntegersApart) {
  const int64_t large = int64_t{1} << 53;
  Tensor x(DType::i64, {3});
  for (int64_t i = 0; i < 3; ++i) x.data_as<int64_t>()[i] = large + i;
  EXPECT_EQ(places_of(top_k(graph_, given(x), 2).indices), (std::vector<int64_t>{2, 1}));
}

TEST_F(TopK, MoreThanThereAre) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(shape_error([&] { top_k(graph_, x, 4, -1, true, "best"); }),
            "[top_k] 'best': k=4 of the 3 elements along axis 1 of 'x' (2,3); give a number from 0 to 3");
}

}  // namespace
}  // namespace weft::ops
