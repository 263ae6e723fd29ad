// What the loops over the op registry do not see of the oneDNN kernels: when they decline, how exact the statistics
// that they convert are, and comparisons with NaN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpu/onednn_support.h"

namespace weft {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TensorType f32(Shape shape) { return {DType::f32, std::move(shape), {}}; }

std::string reason(const NodeSignature& node) {
  std::string why_not;
  EXPECT_EQ(make_onednn_kernel(node, 2, &why_not), nullptr);
  return why_not;
}

OwnedSignature batch_norm(int inputs, const std::string& activation) {
  const TensorType image = f32({2, 16, 4, 4}), channels = f32({16});
  OwnedSignature owned = make_signature("batch_norm", {image, channels, channels}, image,
                                        {{"epsilon", 1e-5}, {"activation", activation}, {"residual_gradient", false}});
  owned.node.outputs = {image, channels, channels};
  if (inputs == 4) owned.node.inputs.push_back(image);
  return owned;
}

TEST(OneDnnNormalization, ResidualsAreDeclined) {
  EXPECT_NE(make_onednn_kernel(batch_norm(3, "relu").node), nullptr);
  EXPECT_THAT(reason(batch_norm(4, "relu").node), HasSubstr("adds no residual"));
}

TEST(OneDnnNormalization, AMaskThatMustBeComputedAgainIsDeclined) {
  OwnedSignature owned = batch_norm(3, "relu");
  owned.op->name = "batch_norm_backward";
  const TensorType image = owned.node.inputs[0], channels = owned.node.inputs[1];
  owned.node.inputs = {image, image, channels, channels, channels, channels};
  EXPECT_THAT(reason(owned.node), HasSubstr("computed again"));
  owned.node.inputs.push_back(image);
  EXPECT_NE(make_onednn_kernel(owned.node), nullptr);
}

/// oneDNN's result is the variance.
TEST(OneDnnNormalization, InverseDeviationsAreExact) {
  constexpr int64_t rows = 37, width = 64;
  const double epsilon = 1e-3;
  OwnedSignature owned = make_signature("layer_norm", {f32({rows, width}), f32({width}), f32({width})},
                                        f32({rows, width}), {{"epsilon", epsilon}});
  owned.node.outputs = {f32({rows, width}), f32({rows}), f32({rows})};
  const auto kernel = make_onednn_kernel(owned.node);
  ASSERT_NE(kernel, nullptr);
  Tensor x = random_tensor({rows, width}, 1), scale = random_tensor({width}, 2), shift = random_tensor({width}, 3);
  for (int64_t i = 0; i < x.elements(); ++i)  // deviations from 1e-4 to 1e4
    x.data_as<float>()[i] *= std::pow(10.0f, static_cast<float>(i / width % 9 - 4));
  Tensor y(owned.node.outputs[0]), mean(owned.node.outputs[1]), inverse(owned.node.outputs[2]);
  const std::vector<const void*> from{x.data(), scale.data(), shift.data()};
  const std::vector<void*> to{y.data(), mean.data(), inverse.data()};
  const auto workspace = allocate_aligned(kernel->workspace_bytes());
  kernel->run({from, to, workspace.get()});
  for (int64_t row = 0; row < rows; ++row) {
    const float* values = x.data_as<float>() + row * width;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < width; ++i) sum += static_cast<double>(values[i]);
    for (int64_t i = 0; i < width; ++i) squares += std::pow(static_cast<double>(values[i]) - sum / width, 2);
    const double expected = 1 / std::sqrt(squares / width + epsilon);
    EXPECT_NEAR(static_cast<double>(inverse.data_as<float>()[row]) / expected, 1, 2e-6) << "row " << row;
  }
}

TEST(OneDnnReduction, LongSumsAreDeclined) {
  const auto sum = [](int64_t length) {
    return make_signature("reduce_sum", {f32({2, length})}, f32({2}),
                          {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
  };
  EXPECT_NE(make_onednn_kernel(sum(65536).node), nullptr);
  EXPECT_THAT(reason(sum(65537).node), HasSubstr("too many numbers for its precision: 65537"));
}

TEST(OneDnnReduction, EmptyOperandsAreDeclined) {
  for (const auto& [from, to] : {std::pair{Shape{0, 5}, Shape{0}}, std::pair{Shape{5, 0}, Shape{5}}})
    EXPECT_THAT(reason(make_signature("reduce_sum", {f32(from)}, f32(to),
                                      {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}})
                           .node),
                HasSubstr("empty"));
}

TEST(OneDnnNormalization, RowsWithoutElementsAreDeclined) {
  OwnedSignature owned =
      make_signature("layer_norm", {f32({4, 0}), f32({0}), f32({0})}, f32({4, 0}), {{"epsilon", 1e-5}});
  owned.node.outputs = {f32({4, 0}), f32({4}), f32({4})};
  EXPECT_THAT(reason(owned.node), HasSubstr("empty"));
}

TEST(OneDnnElementwise, OnlyOneOperandOfADifferenceStretches) {
  const TensorType full = f32({4, 40}), row = f32({40});
  EXPECT_NE(make_onednn_kernel(make_signature("subtract", {full, row}, full).node), nullptr);
  EXPECT_THAT(reason(make_signature("subtract", {row, full}, full).node), HasSubstr("no fast implementation"));
  EXPECT_NE(make_onednn_kernel(make_signature("add", {row, full}, full).node), nullptr);
}

TEST(OneDnnElementwise, NaNIsNotGreater) {
  const OwnedSignature owned = make_signature("greater", {f32({3}), f32({3})}, f32({3}));
  const auto kernel = make_onednn_kernel(owned.node);
  ASSERT_NE(kernel, nullptr);
  Tensor a(DType::f32, {3}), b(DType::f32, {3});
  const float left[] = {NAN, 1, 1}, right[] = {0, NAN, 0};
  std::copy_n(left, 3, a.data_as<float>());
  std::copy_n(right, 3, b.data_as<float>());
  const Tensor y = run_onednn_kernel(*kernel, owned.node, {a, b});
  EXPECT_THAT(std::vector<float>(y.data_as<float>(), y.data_as<float>() + 3), testing::ElementsAre(0, 0, 1));
}

// Its maxima return the other operand where one is NaN, their gradients go there, and a softmax is 0 beside a NaN.
TEST(OneDnnElementwise, WhatHidesNaNIsLeftToOthers) {
  KernelTable table;
  add_onednn_kernels(table);
  for (const char* op : {"maximum", "minimum", "reduce_max", "max_pool2d", "max_pool2d_backward", "softmax"})
    EXPECT_TRUE(table.candidates(op).empty()) << op;
}

}  // namespace
}  // namespace weft
