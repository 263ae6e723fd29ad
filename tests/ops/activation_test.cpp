// Activations against PyTorch.
#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

using Activation = ValuesTest;

// x = leaf(ramp(13, scale=0.9)); y = ... of each test; print(y, *grads(y, x))
Tensor points() { return ramp({13}, 13, 0.9); }

TEST_F(Activation, LeakyRelu) {
  // y = F.leaky_relu(x, 0.2)
  const ValueId x = given(points()), y = leaky_relu(graph_, x, 0.2);
  expect_value(
      y, {13},
      {-1.08, -0.18, 3.5999999, -0.71999998, 0.89999998, 5.4000001, -0.35999999, 2.7, -0.9, 0, 4.5, -0.54000001, 1.8});
  expect_gradients(y, {x}, {{-0.3, -0.05, 1, -0.2, 0.25, 1.5, -0.1, 0.75, -0.25, 0, 1.25, -0.15, 0.5}});
}

TEST_F(Activation, Elu) {
  // y = F.elu(x, 0.7)
  const ValueId x = given(points()), y = elu(graph_, x, 0.7);
  expect_value(y, {13},
               {-0.69683839, -0.41540123, 3.5999999, -0.68087339, 0.89999998, 5.4000001, -0.58429077, 2.7, -0.6922237,
                0, 4.5, -0.65295614, 1.8});
  expect_gradients(y, {x},
                   {{-0.0047424095, -0.071149692, 1, -0.019126608, 0.25, 1.5, -0.057854614, 0.75, -0.009720372, 0, 1.25,
                     -0.035282893, 0.5}});
}

TEST_F(Activation, Silu) {
  // y = F.silu(x)
  const ValueId x = given(points()), y = silu(graph_, x);
  expect_value(y, {13},
               {-0.024279873, -0.26014545, 3.5042507, -0.095749183, 0.63985453, 5.3757202, -0.25533192, 2.529972,
                -0.049441242, 0, 4.4505588, -0.17002806, 1.544668});
  expect_gradients(y, {x},
                   {{0.029511647, -0.026025057, 1.0666055, 0.066605547, 0.22397494, 1.5295116, 0.038630872, 0.8222606,
                     0.047388864, 0, 1.2973889, 0.0722606, 0.53863087}});
}

TEST_F(Activation, Hardswish) {
  // y = F.hardswish(x)
  const ValueId x = given(points()), y = hardswish(graph_, x);
  expect_value(y, {13},
               {0, -0.315, 3.5999999, 0, 0.58499998, 5.4000001, -0.36, 2.5650001, 0, 0, 4.5, -0.13499998, 1.4399999});
  expect_gradients(y, {x}, {{0, -0.050000002, 1, 0, 0.2, 1.5, 0.049999992, 1.05, 0, 0, 1.25, 0.30000001, 0.54999999}});
}

TEST_F(Activation, Hardsigmoid) {
  // y = F.hardsigmoid(x)
  const ValueId x = given(points()), y = hardsigmoid(graph_, x);
  expect_value(y, {13}, {0, 0.35, 1, 0, 0.65, 1, 0.20000001, 0.95000001, 0, 0.5, 1, 0.049999992, 0.79999999});
  expect_gradients(y, {x},
                   {{0, -0.041666668, 0, 0, 0.041666668, 0, -0.083333336, 0.125, 0, 0, 0, -0.125, 0.083333336}});
}

TEST_F(Activation, Relu6) {
  // y = F.relu6(x * 2)
  const ValueId x = given(points()), y = relu6(graph_, multiply_scalar(graph_, x, 2));
  expect_value(y, {13}, {0, 0, 6, 0, 1.8, 6, 0, 5.4000001, 0, 0, 6, 0, 3.5999999});
  expect_gradients(y, {x}, {{0, 0, 0, 0, 0.5, 0, 0, 1.5, 0, 0, 0, 0, 1}});
}

TEST_F(Activation, Clip) {
  // y = F.hardtanh(x, -1, 2)
  const ValueId x = given(points()), y = clip(graph_, x, -1, 2);
  expect_value(y, {13}, {-1, -0.89999998, 2, -1, 0.89999998, 2, -1, 2, -1, 0, 2, -1, 1.8});
  expect_gradients(y, {x}, {{0, -0.25, 0, 0, 0.25, 0, 0, 0, 0, 0, 0, 0, 0.5}});
}

TEST_F(Activation, Softplus) {
  // y = F.softplus(x)
  const ValueId x = given(points()), y = softplus(graph_, x);
  expect_value(y, {13},
               {0.0045064114, 0.34115388, 3.626957, 0.026957096, 1.2411539, 5.4045065, 0.15297762, 2.7650436,
                0.011047745, 0.69314718, 4.5110477, 0.065043559, 1.9529776});
  expect_gradients(y, {x},
                   {{-0.0067444091, -0.072262626, 0.973403, -0.026596996, 0.17773737, 1.4932556, -0.070925535,
                     0.70276999, -0.013733678, 0, 1.2362663, -0.047230015, 0.42907446}});
}

TEST_F(Activation, Erf) {
  // y = torch.erf(x / 2)
  const ValueId x = given(points()), y = erf(graph_, multiply_scalar(graph_, x, 0.5));
  expect_value(y, {13},
               {-0.99986567, -0.47548171, 0.9890905, -0.9890905, 0.47548171, 0.99986567, -0.7969082, 0.9437622,
                -0.99853728, 0, 0.99853728, -0.9437622, 0.7969082});
  expect_gradients(y, {x},
                   {{-0.00057744342, -0.1151915, 0.022095865, -0.022095865, 0.1151915, 0.00057744342, -0.12549215,
                     0.068388741, -0.0044639494, 0, 0.0044639494, -0.068388741, 0.12549215}});
}

// x = leaf(torch.tensor([math.nan, 1, -1])); y = F.relu(x); z = F.relu6(x)
TEST_F(Activation, TheGradientOfANaNPasses) {
  const ValueId x = given(floats({3}, {NAN, 1, -1}));
  for (const ValueId y : {relu(graph_, x), relu6(graph_, x)}) expect_gradients(y, {x}, {{-1.5, -0.25, 0}});
}

}  // namespace
}  // namespace weft::ops
