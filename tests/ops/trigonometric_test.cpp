// Circular and hyperbolic functions against PyTorch.
#include <cmath>

#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

using Trigonometric = ValuesTest;

// x = leaf(ramp(5, scale=0.125)); y = torch.NAME(x); print(y, grads(y, x)), in each of these.
TEST_F(Trigonometric, Sine) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = sin(graph_, x);
  expect_value(y, {5}, {-0.68163876, -0.12467473, 0.47942554, -0.47942554, 0.12467473});
  expect_gradients(y, {x}, {{-1.0975333, -0.24804942, 0.87758256, -0.87758256, 0.24804942}});
}
TEST_F(Trigonometric, Cosine) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = cos(graph_, x);
  expect_value(y, {5}, {0.73168887, 0.99219767, 0.87758256, 0.87758256, 0.99219767});
  expect_gradients(y, {x}, {{-1.0224581, -0.031168683, -0.47942554, -0.47942554, -0.031168683}});
}
TEST_F(Trigonometric, Tangent) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = tan(graph_, x);
  expect_value(y, {5}, {-0.93159646, -0.12565514, 0.54630249, -0.54630249, 0.12565514});
  expect_gradients(y, {x}, {{-2.8018079, -0.2539473, 1.2984464, -1.2984464, 0.2539473}});
}
TEST_F(Trigonometric, ArcSine) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = asin(graph_, x);
  expect_value(y, {5}, {-0.84806208, -0.12532783, 0.52359878, -0.52359878, 0.12532783});
  expect_gradients(y, {x}, {{-2.2677868, -0.25197632, 1.1547005, -1.1547005, 0.25197632}});
}
TEST_F(Trigonometric, ArcCosine) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = acos(graph_, x);
  expect_value(y, {5}, {2.4188584, 1.6961242, 1.0471976, 2.0943951, 1.4454685});
  expect_gradients(y, {x}, {{2.2677868, 0.25197632, -1.1547005, 1.1547005, -0.25197632}});
}
TEST_F(Trigonometric, ArcTangent) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = atan(graph_, x);
  expect_value(y, {5}, {-0.64350111, -0.12435499, 0.46364761, -0.46364761, 0.12435499});
  expect_gradients(y, {x}, {{-0.96, -0.24615385, 0.8, -0.8, 0.24615385}});
}
TEST_F(Trigonometric, HyperbolicSine) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = sinh(graph_, x);
  expect_value(y, {5}, {-0.82231673, -0.12532578, 0.52109531, -0.52109531, 0.12532578});
  expect_gradients(y, {x}, {{-1.9420249, -0.25195567, 1.127626, -1.127626, 0.25195567}});
}
TEST_F(Trigonometric, HyperbolicCosine) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = cosh(graph_, x);
  expect_value(y, {5}, {1.2946833, 1.0078227, 1.127626, 1.127626, 1.0078227});
  expect_gradients(y, {x}, {{1.2334751, 0.031331444, 0.52109531, 0.52109531, 0.031331444}});
}
TEST_F(Trigonometric, InverseHyperbolicSine) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = asinh(graph_, x);
  expect_value(y, {5}, {-0.69314718, -0.12467675, 0.48121183, -0.48121183, 0.12467675});
  expect_gradients(y, {x}, {{-1.2, -0.24806947, 0.89442719, -0.89442719, 0.24806947}});
}
TEST_F(Trigonometric, InverseHyperbolicTangent) {
  const ValueId x = given(ramp({5}, 13, 0.125)), y = atanh(graph_, x);
  expect_value(y, {5}, {-0.97295507, -0.12565721, 0.54930614, -0.54930614, 0.12565721});
  expect_gradients(y, {x}, {{-3.4285714, -0.25396825, 1.3333333, -1.3333333, 0.25396825}});
}
TEST_F(Trigonometric, InverseHyperbolicCosine) {
  // x = leaf(ramp(5).abs() + 1.25); y = torch.acosh(x)
  const ValueId x = given(floats({5}, {2.75, 1.5, 2.25, 2.25, 1.5})), y = acosh(graph_, x);
  expect_value(y, {5}, {1.669919, 0.96242365, 1.4505745, 1.4505745, 0.96242365});
  expect_gradients(y, {x}, {{-0.58554004, -0.2236068, 0.49613894, -0.49613894, 0.2236068}});
}

TEST_F(Trigonometric, OutsideItsDomainIsNotANumber) {
  const ValueId outside = given(floats({2}, {-1.5F, 1.5F}));
  for (const ValueId y : {asin(graph_, outside), acos(graph_, outside), atanh(graph_, outside)}) {
    EXPECT_TRUE(std::isnan(value_of(y).data_as<float>()[0])) << graph_.value(y).name;
    EXPECT_TRUE(std::isnan(value_of(y).data_as<float>()[1])) << graph_.value(y).name;
  }
  EXPECT_TRUE(std::isnan(value_of(acosh(graph_, outside)).data_as<float>()[0]));
}

// 1 - x^2, rounded first, would be wrong in the third digit: the exact slope is 1448.1547.
TEST_F(Trigonometric, SlopeOfTheArcSineNearOneKeepsItsDigits) {
  const float x = 1 - 0x1p-22F;
  const ValueId near_one = given(floats({1}, {x})), y = asin(graph_, near_one);
  const double exact = 1 / std::sqrt((1 - static_cast<double>(x)) * (1 + static_cast<double>(x)));
  expect_gradients(y, {near_one}, {{-1.5 * exact}}, 1e-3);
}

TEST_F(Trigonometric, RoundGoesToTheEvenNeighbour) {
  const ValueId x = given(floats({8}, {-2.5F, -1.5F, -0.4F, 0.5F, 0.6F, 1.5F, 2.5F, 8388609.0F}));
  expect_value(round(graph_, x), {8}, {-2, -2, 0, 0, 1, 2, 2, 8388609}, 0);
  expect_value(ceil(graph_, x), {8}, {-2, -1, 0, 1, 1, 2, 3, 8388609}, 0);
}

TEST_F(Trigonometric, RoundingStopsTheGradient) {
  const ValueId x = given(floats({2}, {0.3F, 1.7F}));
  expect_gradients(add(graph_, x, add(graph_, round(graph_, x), ceil(graph_, x))), {x}, {{-1.5, -0.25}});
}

}  // namespace
}  // namespace weft::ops
