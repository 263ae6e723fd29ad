// Indices, running sums, reductions and splits against PyTorch.
#include <cmath>
#include <limits>

#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

using Indexing = ValuesTest;

TEST_F(Indexing, GatherAlongTheLastAxis) {
  // x = leaf(ramp(3, 4)); i = torch.tensor([[0, 3, 0], [1, 1, 2], [3, 2, 1]]); y = x.gather(1, i)
  const ValueId x = given(ramp({3, 4})), i = given(integers({3, 3}, {0, 3, 0, 1, 1, 2, 3, 2, 1}));
  const ValueId y = gather(graph_, x, i);
  expect_value(y, {3, 3}, {-1.5, -1, -1.5, 1.5, 1.5, -0.5, -0.75, 1.25, 0});
  expect_gradients(y, {x}, {{-0.5, 0, 0, -0.25, 0, -0.75, 1.5, 0, 0, -1.25, 0.75, -0.5}});
}

TEST_F(Indexing, GatherAlongTheFirstAxis) {
  // x = leaf(ramp(4, 2)); i = torch.tensor([[3, 0], [3, 1]]); y = x.gather(0, i)
  const ValueId x = given(ramp({4, 2})), i = given(integers({2, 2}, {3, 0, 3, 1}));
  const ValueId y = gather(graph_, x, i, 0);
  expect_value(y, {2, 2}, {-0.5, -0.25, -0.5, -1});
  expect_gradients(y, {x}, {{0, -0.25, 0, -1, 0, 0, -0.5, 0}});
}

TEST_F(Indexing, GatherOutOfRangeIsNotANumber) {
  const Tensor y = value_of(gather(graph_, given(ramp({3})), given(integers({3}, {-1, 1, 3}))));
  EXPECT_TRUE(std::isnan(y.data_as<float>()[0]));
  EXPECT_FALSE(std::isnan(y.data_as<float>()[1]));
  EXPECT_TRUE(std::isnan(y.data_as<float>()[2]));
}

TEST_F(Indexing, TakeReplacesTheAxis) {
  // x = leaf(ramp(2, 3, 2)); i = torch.tensor([[2, 0], [2, 1]]); y = x[:, i]
  const ValueId x = given(ramp({2, 3, 2})), i = given(integers({2, 2}, {2, 0, 2, 1}));
  const ValueId y = take(graph_, x, i, 1);
  expect_value(y, {2, 2, 2, 2},
               {0.25, 1.5, -1.5, -0.25, 0.25, 1.5, 1, -1, 1.25, -0.75, -0.5, 0.75, 1.25, -0.75, -1.25, 0});
  expect_gradients(y, {x}, {{1, -1, -0.5, 0.75, -1.25, 1.25, 1.25, -0.75, -0.25, 1, -0.75, -1.5}});
  expect_value(take(graph_, x, given(integers({}, {1}))), {3, 2}, {-0.5, 0.75, -1.25, 0, 1.25, -0.75});
}

TEST_F(Indexing, OneHot) {
  const ValueId labels = given(integers({3}, {2, 0, -1}));
  expect_value(one_hot(graph_, labels, 3), {3, 3}, {0, 0, 1, 1, 0, 0, 0, 0, 0});
}

TEST_F(Indexing, ArgmaxTakesTheFirstOfEqualOnes) {
  const ValueId x = given(floats({2, 4}, {1, 3, 3, 2, 5, 5, -1, -1}));
  EXPECT_EQ(reference_tests::values_of<int32_t>(value_of(argmax(graph_, x))), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(reference_tests::values_of<int32_t>(value_of(argmin(graph_, x))), (std::vector<int32_t>{0, 2}));
  const ValueId rows = argmax(graph_, x, 0, true);
  EXPECT_EQ(graph_.shape(rows), (Shape{1, 4}));
  EXPECT_EQ(reference_tests::values_of<int32_t>(value_of(rows)), (std::vector<int32_t>{1, 1, 0, 0}));
}

TEST_F(Indexing, ArgmaxPointsAtNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ValueId x = given(floats({4}, {1, nan, 7, nan}));
  EXPECT_EQ(reference_tests::values_of<int32_t>(value_of(argmax(graph_, x))), (std::vector<int32_t>{1}));
}

TEST_F(Indexing, CumulativeSum) {
  // x = leaf(ramp(2, 4)); y = x.cumsum(1)
  const ValueId x = given(ramp({2, 4})), y = cumulative_sum(graph_, x);
  expect_value(y, {2, 4}, {-1.5, -1.75, -0.75, -1.75, 0.25, 1.75, 1.25, 2});
  expect_gradients(y, {x}, {{-1.75, -0.25, 0, -1, 2, 1.75, 0.25, 0.75}});
}

TEST_F(Indexing, CumulativeSumBackwardsWithoutTheElementItself) {
  // x = leaf(ramp(4, 2)); y = x.flip(0).cumsum(0).flip(0) - x
  const ValueId x = given(ramp({4, 2})), y = cumulative_sum(graph_, x, 0, true, true);
  expect_value(y, {4, 2}, {0.75, 1.25, -0.25, 2.25, -0.5, 0.75, 0, 0});
  expect_gradients(y, {x}, {{0, 0, -1.5, -0.25, -0.5, -1.25, -0.25, 0.25}});
}

TEST_F(Indexing, ReduceMin) {
  // x = leaf(ramp(3, 4)); y = x.amin(1)
  const ValueId x = given(ramp({3, 4})), y = reduce_min(graph_, x, {1});
  expect_value(y, {3}, {-1.5, -0.5, -1.25});
  expect_gradients(y, {x}, {{-1.5, 0, 0, 0, 0, 0, -0.25, 0, 1, 0, 0, 0}});
}

TEST_F(Indexing, LogSumExp) {
  // x = leaf(ramp(3, 4, scale=40)); y = x.logsumexp(1)
  const ValueId x = given(ramp({3, 4}, 13, 40)), y = logsumexp(graph_, x, {1});
  expect_value(y, {3}, {160, 240, 200});
  expect_gradients(y, {x},
                   {{-2.8727544e-174, -2.0758448e-87, -1.5, -1.5916847e-139, -3.4597413e-88, -0.25, -2.6528079e-140,
                     -1.916912e-53, 1.9151696e-174, 1.3838965e-87, 1, 1.0611232e-139}});
  EXPECT_EQ(graph_.shape(logsumexp(graph_, x, {0}, true)), (Shape{1, 4}));
  // x = leaf(ramp(3, 4)); z = x.logsumexp((0, 1))
  expect_value(logsumexp(graph_, given(ramp({3, 4}))), {}, {2.880689});
}

TEST_F(Indexing, SplitGivesEachPartItsGradient) {
  // x = leaf(ramp(2, 6)); a, b, c = x.split(2, 1); y = a * b + c
  const ValueId x = given(ramp({2, 6}));
  const auto parts = split(graph_, x, 3, -1);
  ASSERT_EQ(parts.size(), 3u);
  const ValueId y = add(graph_, multiply(graph_, parts[0], parts[1]), parts[2]);
  expect_value(y, {2, 2}, {-1.25, 1.75, 1.875, -0.75});
  expect_gradients(y, {x}, {{-1.5, 0.25, 2.25, 0.0625, -1.5, -0.25, -1.25, 0, -0.5, -0.75, 1, -1}});
}

TEST_F(Indexing, SplitIntoSizes) {
  const auto parts = split_sizes(graph_, input("x", {5, 3}), {1, 4}, 0);
  EXPECT_EQ(graph_.shape(parts[0]), (Shape{1, 3}));
  EXPECT_EQ(graph_.shape(parts[1]), (Shape{4, 3}));
}

TEST_F(Indexing, SplitThatLeavesARest) {
  const ValueId x = input("x", {5, 3});
  EXPECT_EQ(shape_error([&] { split(graph_, x, 2, 0, "halves"); }),
            "[split] 'halves': axis 0 of 'x' (5,3) does not fall into 2 equal parts");
  EXPECT_EQ(shape_error([&] {
              split_sizes(graph_, x, {2, 2}, 0, "two");
            }),
            "[split] 'two': sizes [2,2] do not add up to axis 0 of 'x' (5,3)");
}

TEST_F(Indexing, IndicesOfAnotherShape) {
  const ValueId x = input("x", {5, 3}), i = input("i", {4, 2}, DType::i32);
  EXPECT_EQ(shape_error([&] { gather(graph_, x, i, 1, "picked"); }),
            "[gather] 'picked': 'i' (4,2) and 'x' (5,3) must be equal in every axis but 1");
}

TEST_F(Indexing, IndicesThatAreReals) {
  const ValueId x = input("x", {5, 3}), i = input("i", {5, 2});
  EXPECT_EQ(shape_error([&] { gather(graph_, x, i, 1, "picked"); }),
            "[gather] 'picked': indices wants i32, got 'i' (5,2) of f32; add a cast");
}

TEST_F(Indexing, NoClasses) {
  const ValueId i = input("i", {5}, DType::i32);
  EXPECT_EQ(shape_error([&] { one_hot(graph_, i, 0, "hot"); }), "[one_hot] 'hot': classes must be at least 1, got 0");
}

// torch.tensor(...).logsumexp(1)
TEST_F(Indexing, LogSumExpOfInfinities) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const ValueId x = given(floats({4, 3}, {-inf, -inf, -inf, inf, 1, 2, inf, -inf, inf, 1, 2, -inf}));
  const std::vector<float> y = reference_tests::values_of<float>(value_of(logsumexp(graph_, x, {1})));
  EXPECT_EQ(y[0], -inf);
  EXPECT_EQ(y[1], inf);
  EXPECT_EQ(y[2], inf);
  EXPECT_NEAR(y[3], 2.3132617f, 1e-6f);
  const ValueId with_nan = given(floats({3}, {1, NAN, inf}));
  EXPECT_TRUE(std::isnan(value_of(logsumexp(graph_, with_nan)).data_as<float>()[0]));
}

TEST_F(Indexing, LogSumExpOfOtherTypes) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const ValueId x = given(floats({3, 2}, {-inf, -inf, inf, 1, 2, 2}));
  for (const DType dtype : {DType::f16, DType::bf16, DType::f64}) {
    SCOPED_TRACE(name_of(dtype));
    const ValueId sums = logsumexp(graph_, cast(graph_, x, dtype), {1});
    EXPECT_EQ(graph_.type(sums).dtype, dtype);
    const std::vector<float> y = reference_tests::values_of<float>(value_of(cast(graph_, sums, DType::f32)));
    EXPECT_EQ(y[0], -inf);
    EXPECT_EQ(y[1], inf);
    EXPECT_NEAR(y[2], 2.6931472f, dtype == DType::f64 ? 1e-6f : 1e-2f);
  }
}

}  // namespace
}  // namespace weft::ops
