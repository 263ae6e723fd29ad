// Powers, comparisons and selection against PyTorch.
#include <cmath>
#include <limits>

#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

using Arithmetic = ValuesTest;

TEST_F(Arithmetic, PowerOfTwoTensors) {
  // a = leaf(ramp(2, 3).abs() + 0.5); b = leaf(ramp(3, scale=1)); y = a ** b
  const ValueId a = given(floats({2, 3}, {2, 0.75, 1.5, 1.5, 0.75, 2})), b = given(ramp({3}, 13, 1)),
                y = pow(graph_, a, b);
  expect_value(y, {2, 3}, {0.015625, 1.3333333, 5.0625, 0.087791495, 1.3333333, 16}, 2e-5);
  expect_gradients(y, {a, b},
                   {{0.0703125, 0.44444444, 13.5, 0.35116598, -0.44444444, 48}, {-0.051842025, 0, 18.688199}}, 2e-3);
}

TEST_F(Arithmetic, PowerAtZero) {
  // a = leaf(torch.tensor([0, 0, 0, 2.]).double()); b = leaf(torch.tensor([0, 1, 2, 0.]).double()); y = a ** b
  const ValueId a = given(floats({4}, {0, 0, 0, 2})), b = given(floats({4}, {0, 1, 2, 0})), y = pow(graph_, a, b);
  expect_value(y, {4}, {1, 0, 0, 1});
  expect_gradients(y, {a, b}, {{0, -0.25, 0, 0}, {0, 0, 0, -0.69314718}});
}

TEST_F(Arithmetic, PowerOfAScalar) {
  // x = leaf(ramp(7).abs() + 0.5); y = x ** -1.5
  const ValueId x = given(floats({7}, {2, 0.75, 1.5, 1.5, 0.75, 2, 1})), y = pow_scalar(graph_, x, -1.5);
  expect_value(y, {7}, {0.35355339, 1.5396007, 0.54433105, 0.54433105, 1.5396007, 0.35355339, 1});
  expect_gradients(y, {x}, {{0.39774756, 0.76980036, -0.54433105, 0.54433105, -0.76980036, -0.39774756, 0.75}}, 1e-5);
}

TEST_F(Arithmetic, FrequentPowersAreOpsOfTheirOwn) {
  const ValueId x = given(ramp({3}));
  EXPECT_EQ(graph_.producer(pow_scalar(graph_, x, 2))->op->name, "square");
  EXPECT_EQ(graph_.producer(pow_scalar(graph_, x, 0.5))->op->name, "sqrt");
  EXPECT_EQ(graph_.producer(pow_scalar(graph_, x, -1))->op->name, "reciprocal");
}

TEST_F(Arithmetic, Comparisons) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ValueId a = given(floats({4}, {1, 2, 3, nan})), b = given(floats({4}, {2, 2, 2, 2}));
  expect_value(less(graph_, a, b), {4}, {1, 0, 0, 0});
  expect_value(less_equal(graph_, a, b), {4}, {1, 1, 0, 0});
  expect_value(greater_equal(graph_, a, b), {4}, {0, 1, 1, 0});
  expect_value(not_equal(graph_, a, b), {4}, {1, 0, 1, 1});
}

TEST_F(Arithmetic, ChoosesAndSendsTheGradientWhereItChose) {
  // x = leaf(ramp(2, 3)); b = leaf(ramp(3, period=7)); y = torch.where(x > 0, x, b)
  const ValueId x = given(ramp({2, 3})), b = given(ramp({3}, 7)), zero = constant(graph_, {}, 0);
  const ValueId y = where(graph_, greater(graph_, x, zero), x, b);
  expect_value(y, {2, 3}, {-0.75, 0.5, 1, -0.75, 0.25, 1.5});
  expect_gradients(y, {x, b}, {{0, 0, 1, 0, 0.25, 1.5}, {-2.5, -0.25, 0}});
}

TEST_F(Arithmetic, WhatIsNotChosenDoesNotMatter) {
  const ValueId x = given(floats({2}, {-1, 4})), zero = constant(graph_, {}, 0);
  const ValueId y = where(graph_, greater(graph_, x, zero), sqrt(graph_, x), zero);
  expect_value(y, {2}, {0, 2});
}

TEST_F(Arithmetic, SignAndFloor) {
  const ValueId x = given(floats({5}, {-1.5f, -0.25f, 0, 0.25f, 2}));
  expect_value(sign(graph_, x), {5}, {-1, -1, 0, 1, 1});
  expect_value(floor(graph_, x), {5}, {-2, -1, 0, 0, 2});
  expect_gradients(add(graph_, sign(graph_, x), floor(graph_, x)), {x}, {{0, 0, 0, 0, 0}});
}

}  // namespace
}  // namespace weft::ops
