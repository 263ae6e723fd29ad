// Elementwise ops: GELU against PyTorch, the rest by hand.
#include <cmath>
#include <limits>

#include "tests/cpu/reference_values.h"

namespace weft::reference_tests {
namespace {

// x = leaf(torch.tensor([-6, -2.5, -1, -0.25, 0, 0.25, 1, 2.5, 6]).double())
// y = F.gelu(x, approximate="none" or "tanh"); y.sum().backward(); print(y, x.grad)
Tensor gelu_points() { return floats({9}, {-6, -2.5f, -1, -0.25f, 0, 0.25f, 1, 2.5f, 6}); }
Tensor ones() { return floats({9}, std::vector<float>(9, 1)); }

TEST(ReferenceElementwise, GeluByErf) {
  expect_values(call("gelu", {gelu_points()})[0],
                {-5.9195259e-09, -0.015524163, -0.15865525, -0.10032342, 0, 0.14967658, 0.84134475, 2.4844758, 6});
  expect_values(call("gelu_backward", {ones(), gelu_points()})[0],
                {-3.5468709e-08, -0.037611086, -0.083315471, 0.30462665, 0.5, 0.69537335, 1.0833155, 1.0376111, 1});
  expect_values(call("gelu_slope", {gelu_points()})[0],
                {-3.5468709e-08, -0.037611086, -0.083315471, 0.30462665, 0.5, 0.69537335, 1.0833155, 1.0376111, 1});
}

TEST(ReferenceElementwise, GeluByTanh) {
  const Attributes tanh_form{{"approximate", true}};
  expect_values(call("gelu", {gelu_points()}, tanh_form)[0],
                {-8.439649e-11, -0.015084266, -0.15880801, -0.10032465, 0, 0.14967535, 0.84119199, 2.4849157, 6});
  expect_values(call("gelu_backward", {ones(), gelu_points()}, tanh_form)[0],
                {-7.709976e-10, -0.037951576, -0.082964084, 0.3046459, 0.5, 0.6953541, 1.0829641, 1.0379516, 1});
  expect_values(call("gelu_slope", {gelu_points()}, tanh_form)[0],
                {-7.709976e-10, -0.037951576, -0.082964084, 0.3046459, 0.5, 0.6953541, 1.0829641, 1.0379516, 1});
}

TEST(ReferenceElementwise, BroadcastsARowOverAColumn) {
  const auto outputs = call("subtract", {floats({2, 1}, {10, 20}), floats({3}, {1, 2, 3})});
  ASSERT_EQ(outputs[0].shape(), (Shape{2, 3}));
  expect_values(outputs[0], {9, 8, 7, 19, 18, 17});
}

TEST(ReferenceElementwise, ComparesIntegersExactly) {
  // 16777217 is no f32.
  expect_values(call("equal", {integers({2}, {16777217, 5}), integers({2}, {16777216, 5})})[0], {0, 1});
  expect_values(call("greater", {integers({2}, {16777217, 5}), integers({2}, {16777216, 5})})[0], {1, 0});
}

TEST(ReferenceElementwise, SigmoidDoesNotOverflow) {
  expect_values(call("sigmoid", {floats({3}, {-1000, 0, 1000})})[0], {0, 0.5, 1});
}

TEST(ReferenceElementwise, ReluLetsNotANumberThrough) {
  const auto outputs = call("relu", {floats({1}, {std::numeric_limits<float>::quiet_NaN()})});
  EXPECT_TRUE(std::isnan(*outputs[0].data_as<float>()));
}

TEST(ReferenceElementwise, FusedProgramWithTwoResults) {
  // slots: 0, 1 inputs; 2 = x + row; 3 = relu; 4 = half of it
  const auto outputs = call(
      "fused_elementwise", {floats({2, 2}, {1, -2, 3, -4}), floats({2}, {1, 1})},
      {{"program", std::string("add(0,1);relu(2);multiply_scalar(3,0.5)")}, {"results", std::vector<int64_t>{4, 2}}});
  expect_values(outputs[0], {1, 0, 2, 0});
  expect_values(outputs[1], {2, -1, 4, -3});
}

}  // namespace
}  // namespace weft::reference_tests
