// Values of reductions where definitions differ: products with zeros, extrema with NaN.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

using ReduceValues = ValuesTest;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST_F(ReduceValues, ProductOfRows) {
  // x = leaf(ramp(3, 4)); y = x.prod(1)
  const ValueId x = given(ramp({3, 4})), y = reduce_prod(graph_, x, {1});
  expect_value(y, {3}, {-0.375, -0.140625, 0});
  expect_gradients(y, {x},
                   {{-0.375, -2.25, 0.5625, -0.5625, 0.140625, 0.0234375, -0.0703125, 0.046875, 0, 1.171875, 0, 0}});
}

TEST_F(ReduceValues, ProductOfColumns) {
  // y = x.prod(0, keepdim=True)
  const ValueId x = given(ramp({3, 4})), y = reduce_prod(graph_, x, {0}, true);
  expect_value(y, {1, 4}, {0.46875, 0, -0.625, 0.5625});
  expect_gradients(y, {x}, {{0.46875, 0, -0.625, 0.5625, -2.8125, 0, 1.25, -0.75, 0.5625, 0.09375, -0.5, 0.75}});
}

TEST_F(ReduceValues, GradientOfAProductIsRightWithOneZeroAndWithTwo) {
  // x = leaf(torch.tensor([[2., 0, 3, 4], [0, 5, 0, 6], [1, 2, 3, 4]]).double()); y = x.prod(1)
  const ValueId x = given(floats({3, 4}, {2, 0, 3, 4, 0, 5, 0, 6, 1, 2, 3, 4})), y = reduce_prod(graph_, x, {-1});
  expect_value(y, {3}, {0, 0, 24});
  expect_gradients(y, {x}, {{0, -36, 0, 0, 0, 0, 0, 0, 24, 12, 8, 6}});
}

TEST_F(ReduceValues, AProductMayPassThroughWhatNoFloatHolds) {
  // torch.tensor([1e30] * 4 + [1e-30] * 4).double().prod(): in double, whatever the order
  std::vector<float> numbers(8, 1e30f);
  std::fill(numbers.begin() + 4, numbers.end(), 1e-30f);
  const Tensor y = value_of(reduce_prod(graph_, given(floats({8}, numbers))));
  EXPECT_NEAR(static_cast<double>(y.data_as<float>()[0]), 1, 1e-4);
}

TEST_F(ReduceValues, ExtremaOfWhatHoldsNaNAreNaN) {
  // t = torch.tensor([[1, nan, 3], [4, 5, 6]]); t.amax(1), t.amin(1), t.amax(0), t.amin(0), t.amax(), t.amin()
  const ValueId x = given(floats({2, 3}, {1, kNaN, 3, 4, 5, 6}));
  const auto expect = [&](ValueId id, const std::vector<float>& expected) {
    const Tensor y = value_of(id);
    ASSERT_EQ(y.elements(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      const float value = y.data_as<float>()[i];
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(value) : value == expected[i]) << i << ": " << value;
    }
  };
  expect(reduce_max(graph_, x, {1}), {kNaN, 6});
  expect(reduce_min(graph_, x, {1}), {kNaN, 4});
  expect(reduce_max(graph_, x, {0}), {4, kNaN, 6});
  expect(reduce_min(graph_, x, {0}), {1, kNaN, 3});
  expect(reduce_max(graph_, x), {kNaN});
  expect(reduce_min(graph_, x), {kNaN});
}

TEST_F(ReduceValues, NoGradientPassesAGradientOfAProductOfTheWrongShape) {
  const ValueId x = given(ramp({2, 3}));
  EXPECT_EQ(shape_error([&] {
              graph_.add("reduce_prod_backward", {x, x}, {{"axes", std::vector<int64_t>{1}}}, "g");
            }),
            "[reduce_prod_backward] 'g': the product of 'x0' (2,3) is (2), and 'x0' (2,3) is no gradient of it");
}

}  // namespace
}  // namespace weft::ops
