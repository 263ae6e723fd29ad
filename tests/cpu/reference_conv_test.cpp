// Convolution and its gradients against PyTorch.
#include "tests/cpu/reference_values.h"

namespace weft::reference_tests {
namespace {

// x = leaf(ramp(1, 4, 5, 4)); w = leaf(ramp(4, 2, 3, 2, period=11, scale=0.125))
// y = F.conv2d(x, w, stride=(2, 1), padding=(1, 1), dilation=(1, 2), groups=2)
// y.backward(ramp(*y.shape, period=9, scale=0.5)); print(y, x.grad, w.grad)
const Shape kInput{1, 4, 5, 4}, kWeight{4, 2, 3, 2}, kOutput{1, 4, 3, 4};

using List = std::vector<int64_t>;
Attributes geometry() {
  return {{"stride", List{2, 1}}, {"padding", List{1, 1}}, {"dilation", List{1, 2}}, {"groups", int64_t{2}}};
}

TEST(ReferenceConv, StridedPaddedDilatedGrouped) {
  const auto outputs = call("conv2d", {ramp(kInput), ramp(kWeight, 11, 0.125)}, geometry());
  ASSERT_EQ(outputs[0].shape(), kOutput);
  expect_values(outputs[0],
                {-0.03125, 0.21875, -0.1875,  0.1875,   0.21875,  0.34375, -2.46875, 0.3125,  0.0625,   -0.78125,
                 2,        0.75,    0.28125,  0.53125,  -0.09375, 0.9375,  0.375,    0,       0.8125,   1.125,
                 -0.71875, 0.03125, 0.25,     0.03125,  -1,       -0.6875, 1.8125,   -0.0625, -0.34375, -0.71875,
                 0.875,    0.59375, -0.03125, 0.21875,  -0.1875,  0.1875,  0.4375,   0.4375,  -1.34375, -0.96875,
                 0.125,    1.53125, -1.0625,  -1.09375, 0.28125,  0.53125, -0.09375, 0.9375});
}

TEST(ReferenceConv, BackwardData) {
  Attributes attributes = geometry();
  attributes.set("input_size", List{5, 4});
  const auto outputs = call("conv2d_backward_data", {ramp(kOutput, 9, 0.5), ramp(kWeight, 11, 0.125)}, attributes);
  expect_values(outputs[0], {0.4375,  -0.375,  0.125,   0.9375,  -0.4375, 1.3125, -1.125,  -0.3125, 0.9375, 1.0625,
                             1,       -0.9375, 2,       0,       2.0625,  -1.25,  -1.375,  -0.3125, -0.375, -0.5625,
                             0.625,   0,       0.125,   0.9375,  1.25,    1.5625, 0.125,   0.625,   0.375,  1.625,
                             -0.5,    0,       -0.9375, 2,       -1.125,  -0.125, -1,      0.4375,  0,      -0.375,
                             0.875,   -0.25,   -1.5625, -0.5625, -0.5625, 0.375,  -1.6875, -0.75,   -1.125, 0.125,
                             -0.0625, -0.4375, -1.1875, 1.125,   -0.9375, -0.5,   0.25,    0.5,     -0.25,  -0.3125,
                             -0.0625, 1.25,    -2.125,  0,       -0.8125, -0.875, 1.5,     -0.375,  -1.125, 0.125,
                             -0.4375, -0.625,  1.8125,  -0.375,  0.875,   -0.25,  1.1875,  -1,      1.25,   -1.25});
}

TEST(ReferenceConv, BackwardWeights) {
  Attributes attributes = geometry();
  attributes.set("kernel", List{3, 2});
  const auto outputs = call("conv2d_backward_weights", {ramp(kInput), ramp(kOutput, 9, 0.5)}, attributes);
  expect_values(outputs[0],
                {-2.75,  -1.625, 1.125, 1.5,    -1.625, -3.75,  -1.125, -0.125, 1.125,  -0.5,  -6.25,  -4,
                 -1.625, 2.5,    2.25,  0.375,  5.125,  -1.875, -4.875, -0.875, 2.25,   -1.25, 0.125,  3.125,
                 -3.25,  -5.5,   6.375, 3.75,   2.5,    -0.875, -4.875, 1.25,   -3.375, 0.875, -0.875, 0.875,
                 5.375,  -0.25,  -3.75, -4.125, 2.125,  5.5,    -1.125, 1.25,   6,      6.875, 4,      2});
}

// By hand: each channel has its own 1x1 weight.
TEST(ReferenceConv, Depthwise) {
  const auto outputs =
      call("conv2d", {floats({1, 2, 1, 2}, {1, 2, 3, 4}), floats({2, 1, 1, 1}, {10, -1})}, {{"groups", int64_t{2}}});
  expect_values(outputs[0], {10, 20, -3, -4});
}

}  // namespace
}  // namespace weft::reference_tests
