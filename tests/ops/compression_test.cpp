// What the ops that make gradients smaller mean, beyond that their kernels agree with each other.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "tests/ops/values_fixture.h"
#include "weft/base/rng.h"

namespace weft::ops {
namespace {

using Compression = ValuesTest;

Tensor drawn(const Shape& shape, uint64_t seed) {
  Tensor tensor({DType::f32, shape, {}});
  RandomStream stream(seed);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data_as<float>()[i] = stream.normal();
  return tensor;
}

double dot(const Tensor& matrix, int64_t a, int64_t b) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  const float* x = matrix.data_as<float>();
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) sum += static_cast<double>(x[row * columns + a]) * x[row * columns + b];
  return sum;
}

void expect_orthonormal(const Tensor& y) {
  for (int64_t a = 0; a < y.shape()[1]; ++a)
    for (int64_t b = 0; b < y.shape()[1]; ++b) EXPECT_NEAR(dot(y, a, b), a == b ? 1 : 0, 1e-5) << a << " and " << b;
}

TEST_F(Compression, OrthogonalColumnsSpanTheSame) {
  const Tensor x = drawn({40, 5}, 1);
  const ValueId y = graph_.add("orthogonalise", {given(x)});
  expect_orthonormal(value_of(y));
  // Y Y^T X = X
  const ValueId again = matmul(graph_, y, matmul(graph_, y, graph_.find_value("x0"), true));
  const Tensor projected = value_of(again);
  for (int64_t i = 0; i < x.elements(); ++i) EXPECT_NEAR(projected.data_as<float>()[i], x.data_as<float>()[i], 1e-5);
}

TEST_F(Compression, ColumnsThatAreZeroOrDependOnOthersAreReplaced) {
  Tensor x = drawn({20, 4}, 2);
  for (int64_t row = 0; row < 20; ++row) {
    x.data_as<float>()[row * 4 + 1] = 0;
    x.data_as<float>()[row * 4 + 3] = 3 * x.data_as<float>()[row * 4];
  }
  expect_orthonormal(value_of(graph_.add("orthogonalise", {given(x)})));
}

TEST_F(Compression, SelectsTheLargestOfEitherSignAndTheFirstOfEqualOnes) {
  const ValueId x = given(reference_tests::floats({2, 4}, {1, -5, 0, 3, -3, 2, 3, 0.5}));
  const std::vector<ValueId> parts = graph_.add_node("top_k_select", {x}, {{"k", int64_t{3}}});
  expect_value(parts[0], {3}, {-5, 3, -3});
  const Tensor places = value_of(parts[1]);
  EXPECT_THAT(std::vector<int32_t>(places.data_as<int32_t>(), places.data_as<int32_t>() + 3),
              testing::ElementsAre(1, 3, 4));
  expect_value(parts[2], {2, 4}, {1, 0, 0, 0, 0, 2, 3, 0.5});
}

TEST_F(Compression, SelectsAmongMany) {
  const Tensor x = drawn({100'003}, 3);
  constexpr int64_t k = 1234;
  const std::vector<ValueId> parts = graph_.add_node("top_k_select", {given(x)}, {{"k", k}});
  const Tensor values = value_of(parts[0]), places = value_of(parts[1]), rest = value_of(parts[2]);
  float least = INFINITY, most = 0;
  for (int64_t i = 0; i < k; ++i) {
    least = std::min(least, std::abs(values.data_as<float>()[i]));
    EXPECT_EQ(values.data_as<float>()[i], x.data_as<float>()[places.data_as<int32_t>()[i]]);
    if (i > 0) {
      EXPECT_LT(places.data_as<int32_t>()[i - 1], places.data_as<int32_t>()[i]);
    }
  }
  for (int64_t i = 0; i < x.elements(); ++i) most = std::max(most, std::abs(rest.data_as<float>()[i]));
  EXPECT_GE(least, most);
}

TEST_F(Compression, SignsAreBitsAndTheMeansOfBothSigns) {
  Tensor x({DType::f32, {40}, {}});
  for (int64_t i = 0; i < 40; ++i) x.data_as<float>()[i] = i < 32 ? (i % 2 == 0 ? 1.0f : -3.0f) : static_cast<float>(i);
  const std::vector<ValueId> parts = graph_.add_node("pack_signs", {given(x)}, {{"block", int64_t{32}}});
  const Tensor signs = value_of(parts[0]);
  EXPECT_EQ(static_cast<uint32_t>(signs.data_as<int32_t>()[0]), 0xaaaaaaaau);
  EXPECT_EQ(signs.data_as<int32_t>()[1], 0);
  expect_value(parts[1], {2, 2}, {1, -3, 35.5, 0});
  std::vector<double> rest(40, 0);
  for (size_t i = 32; i < 40; ++i) rest[i] = static_cast<double>(i) - 35.5;
  expect_value(parts[2], {40}, rest);
}

TEST_F(Compression, WhatIsPackedAndTheRestAreTheWhole) {
  const Tensor x = drawn({7, 451}, 4);
  const std::vector<ValueId> parts = graph_.add_node("pack_signs", {given(x)});
  const ValueId y = graph_.add("unpack_signs", {parts[0], parts[1]},
                               {{"shape", std::vector<int64_t>{7, 451}}, {"ranks", int64_t{1}}});
  const Tensor whole = value_of(add(graph_, y, parts[2]));
  for (int64_t i = 0; i < x.elements(); ++i) EXPECT_NEAR(whole.data_as<float>()[i], x.data_as<float>()[i], 1e-5);
}

}  // namespace
}  // namespace weft::ops
