// Transposed and 1-d convolution, group and instance norm, resizing and adaptive pooling against PyTorch.
#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

using Layers = ValuesTest;

TEST_F(Layers, TransposedConvolution) {
  // x = leaf(ramp(1, 2, 2, 3)); w = leaf(ramp(2, 2, 3, 2)); y = F.conv_transpose2d(x, w, stride=2, padding=(1, 0),
  // output_padding=1)
  const ValueId x = given(ramp({1, 2, 2, 3})), w = given(ramp({2, 2, 3, 2}));
  const ValueId y = conv_transpose2d(graph_, x, w, {.stride = {2, 2}, .padding = {1, 0}, .output_padding = {1, 1}});
  expect_value(
      y, {1, 2, 4, 7},
      {-1.375, 1,     -0.4375, 1,       1.3125,  -2.25,  0, 1.625,  -2.125, -0.5625, -2.125, -1.125, 1.9375,  0,
       -1,     1,     -0.0625, 1,       1.6875,  -2.25,  0, -0.25,  -1.5,   -1.1875, 0.6875, 1.125,  2.0625,  0,
       1.5,    0.625, 0.875,   -0.9375, -2.1875, 1.5625, 0, -1.375, -0.25,  1.4375,  0.6875, -0.625, -0.8125, 0,
       1.25,   0,     0.625,   -1.5625, -2.4375, 0.9375, 0, -1.25,  0.75,   0.3125,  1.375,  1.875,  -2.0625, 0},
      1e-5);
  expect_gradients(
      y, {x, w},
      {{-5.125, 2.25, -1.75, 1.9375, -1.75, -0.5625, 2.625, -2, 0.6875, 1.9375, -4.3125, -1.625},
       {-1.875, 2.3125, 4.5,     0.4375,  0.4375, -0.375, -2.4375, -1.5,   0.4375, -0.375, -2.8125, -0.375,
        0.5625, 1.1875, -1.1875, -1.8125, 1.75,   1.125,  0.1875,  0.8125, 1.625,  1,      2.125,   -2.5625}},
      1e-5);
}

TEST_F(Layers, TransposedConvolutionInGroupsDilated) {
  // x = leaf(ramp(1, 4, 2, 2)); w = leaf(ramp(4, 1, 2, 2)); y = F.conv_transpose2d(x, w, groups=2, dilation=2,
  // padding=1)
  const ValueId x = given(ramp({1, 4, 2, 2})), w = given(ramp({4, 1, 2, 2}));
  const ValueId y = conv_transpose2d(graph_, x, w, {.padding = {1, 1}, .dilation = {2, 2}, .groups = 2});
  expect_value(y, {1, 2, 2, 2}, {1.6875, -1, -1, 1.6875, 1.4375, 0.375, 0.375, 1.4375}, 1e-5);
  expect_gradients(
      y, {x, w},
      {{1, 1, 0.0625, 2.25, -0.75, -0.5, -0.375, -0.375, -0.5625, -0.625, 0, -0.3125, 0.75, 0.125, -2.25, 0.125},
       {1.5, -0.25, -0.25, 1.5, -1.125, 0.125, 1.5, -0.25, -0.1875, 1.875, 0, -0.9375, 0.25, -0.375, 0.75, 0.375}},
      1e-5);
}

TEST_F(Layers, SequenceConvolution) {
  // x = leaf(ramp(2, 4, 5)); w = leaf(ramp(2, 2, 3)); y = F.conv1d(x, w, stride=2, padding=2, dilation=2, groups=2)
  const ValueId x = given(ramp({2, 4, 5})), w = given(ramp({2, 2, 3}));
  const ValueId y = conv1d(graph_, x, w, {.stride = 2, .padding = 2, .dilation = 2, .groups = 2});
  expect_value(y, {2, 2, 3},
               {2.875, 0.9375, -2.3125, 1.375, 0.75, -1.0625, -0.4375, -3.9375, 0.1875, 1.375, 1.25, -2.5625}, 1e-5);
  expect_gradients(y, {x, w},
                   {{0.75,   0, -2.9375, 0, -0.5,   -0.125, 0, -3.3125, 0, -0.125, -0.875, 0, 0.6875, 0, 0.8125,
                     -1.25,  0, 1.0625,  0, 1.6875, -1,     0, 1.1875,  0, 1.0625, -0.875, 0, 0.6875, 0, 0.8125,
                     -0.625, 0, 1.3125,  0, -2.125, 0,      0, 1.5625,  0, -1.875},
                    {1.9375, 2.8125, -2.125, 1.0625, -1.625, -1.75, 1.75, -1.1875, -2.125, 1.1875, -1.5, -2.25}},
                   1e-5);
}

TEST_F(Layers, GroupNorm) {
  // x = leaf(ramp(2, 4, 2, 1)); s = leaf(ramp(4, period=5) + 1); b = leaf(ramp(4, period=3)); y = F.group_norm(x, 2, s,
  // b)
  const ValueId x = given(ramp({2, 4, 2, 1})), s = given(floats({4}, {0.5, 0.5, 0.5, 0.5})), b = given(ramp({4}, 3));
  const ValueId y = group_norm(graph_, x, s, b, 2);
  expect_value(y, {2, 4, 2, 1},
               {-0.81416163, -0.15044206, 1.0132775, -0.048673806, -0.17149697, 0.68598788, -0.93598788, -0.078503029,
                -0.81416163, -0.15044206, 1.0132775, -0.048673806, 0.29867381, -0.7632775, -0.34955794, 0.31416163},
               1e-5);
  expect_gradients(y, {x, s, b},
                   {{-6.3622797e-06, 1.1227552e-06, 8.6077902e-06, -3.3682657e-06, -3.2281175e-06, 1.291247e-05,
                     -1.291247e-05, 3.2281175e-06, -6.3622797e-06, 1.1227552e-06, 8.6077902e-06, -3.3682657e-06,
                     3.3682657e-06, -8.6077902e-06, -1.1227552e-06, 6.3622797e-06},
                    {3.05311, 4.4801071, 4.5607215, 2.1213356},
                    {-3, 0.5, 0.75, 1}},
                   1e-5);
}

TEST_F(Layers, GroupNormOfSequences) {
  // x = leaf(ramp(2, 4, 3)); s = torch.ones(4).double(); y = F.group_norm(x, 4, s, s * 0)
  const ValueId x = given(ramp({2, 4, 3})), s = given(floats({4}, {1, 1, 1, 1})), b = given(floats({4}, {0, 0, 0, 0}));
  expect_value(group_norm(graph_, x, s, b, 4), {2, 4, 3},
               {-1.224739,  0,           1.224739,  -1.224739,  0,          1.224739,   -0.20202902, 1.3131887,
                -1.1111596, -0.20202902, 1.3131887, -1.1111596, 1.1111596,  -1.3131887, 0.20202902,  1.1111596,
                -1.3131887, 0.20202902,  1.1111596, -1.3131887, 0.20202902, -1.224739,  0,           1.224739},
               1e-5);
}

TEST_F(Layers, InstanceNorm) {
  // x = leaf(ramp(2, 3, 2, 2)); s = leaf(ramp(3, period=5) + 1); b = leaf(ramp(3, period=3)); y = F.instance_norm(x,
  // weight=s, bias=b)
  const ValueId x = given(ramp({2, 3, 2, 2})), s = given(floats({3}, {0.5, 0.5, 0.5})), b = given(ramp({3}, 3));
  const ValueId y = instance_norm(graph_, x, s, b);
  expect_value(y, {2, 3, 2, 2},
               {-0.81416163, -0.15044206, 0.5132775, -0.54867381,  0.078503029, 0.93598788, -0.43598788,  0.42149697,
                -0.56416163, 0.099557935, 0.7632775, -0.29867381,  0.048673806, -1.0132775, -0.34955794,  0.31416163,
                -0.31416163, 0.34955794,  1.0132775, -0.048673806, 0.29867381,  -0.7632775, -0.099557935, 0.56416163},
               1e-5);
  expect_gradients(y, {x, s, b},
                   {{-6.3622797e-06, 1.1227552e-06,  8.6077902e-06,  -3.3682657e-06, -3.2281175e-06, 1.291247e-05,
                     -1.291247e-05,  3.2281175e-06,  -6.3622797e-06, 1.1227552e-06,  8.6077902e-06,  -3.3682657e-06,
                     3.3682657e-06,  -8.6077902e-06, -1.1227552e-06, 6.3622797e-06,  -6.3622797e-06, 1.1227552e-06,
                     8.6077902e-06,  -3.3682657e-06, 3.3682657e-06,  -8.6077902e-06, -1.1227552e-06, 6.3622797e-06},
                    {7.5332171, 6.6820571, 7.5332171},
                    {-2, 2.25, 0}},
                   1e-5);
}

TEST_F(Layers, BatchNormOfSequences) {
  // x = leaf(ramp(2, 3, 3)); s = leaf(ramp(3, period=5) + 1); b = leaf(ramp(3, period=3)); y = F.batch_norm(x, None,
  // None, s, b, True)
  const ValueId x = given(ramp({2, 3, 3})), s = given(floats({3}, {0.5, 0.5, 0.5})), b = given(ramp({3}, 3));
  const ValueId y = batch_norm(graph_, x, s, b).output;
  expect_value(
      y, {2, 3, 3},
      {-1.0166847, -0.35952638, 0.29763192, -0.21483245, 0.41902998, 1.0528924, -0.22036443, 0.51418366, -0.66109328,
       -0.22809472, 0.42906358, -0.6223897, 0.54580247, -0.46837742, 0.16548501, 0.66109328, -0.51418366, 0.22036443},
      1e-5);
  expect_gradients(y, {x, s},
                   {{-8.4761131e-06, -1.2108733e-06, 6.0543665e-06, -4.7810846e-06, 1.7385762e-06, 8.258237e-06,
                     -3.0438407e-06, 7.1022949e-06, -9.131522e-06, 2.4217466e-07, 7.5074145e-06, -4.1169692e-06,
                     3.0425084e-06, -7.3889489e-06, -8.6928811e-07, 9.131522e-06, -7.1022949e-06, 3.0438407e-06},
                    {5.7063246, 5.9160494, 5.1051092}},
                   1e-5);
  // m = torch.tensor([0.25, -0.5, 0]).double(); v = torch.tensor([1, 0.25, 4]).double(); z = F.batch_norm(x, m, v, s,
  // b)
  const ValueId m = given(floats({3}, {0.25f, -0.5f, 0})), v = given(floats({3}, {1, 0.25f, 4}));
  expect_value(batch_norm_inference(graph_, x, s, b, m, v), {2, 3, 3},
               {-1.1249956, -0.49999875, 0.12499813, -0.24999, 0.999985, 2.24996, -0.12499984, 0.18749977, -0.31249961,
                -0.37499938, 0.2499975, -0.7499975, 1.24998, -0.74998, 0.499995, 0.24999969, -0.24999969, 0.062499922},
               1e-5);
}

TEST_F(Layers, NearestLarger) {
  // x = leaf(ramp(1, 2, 2, 3)); y = F.interpolate(x, (5, 6))
  const ValueId x = given(ramp({1, 2, 2, 3})), y = resize(graph_, x, {5, 6});
  expect_value(y, {1, 2, 5, 6},
               {-1.5,  -1.5,  -0.25, -0.25, 1,     1,     -1.5, -1.5,  -0.25, -0.25, 1,     1,     -1.5, -1.5,  -0.25,
                -0.25, 1,     1,     -1,    -1,    0.25,  0.25, 1.5,   1.5,   -1,    -1,    0.25,  0.25, 1.5,   1.5,
                -0.5,  -0.5,  0.75,  0.75,  -1.25, -1.25, -0.5, -0.5,  0.75,  0.75,  -1.25, -1.25, -0.5, -0.5,  0.75,
                0.75,  -1.25, -1.25, 0,     0,     1.25,  1.25, -0.75, -0.75, 0,     0,     1.25,  1.25, -0.75, -0.75});
  expect_gradients(y, {x}, {{-2.5, -0.5, 1.5, 0.75, -2.25, 1.25, 1.5, 0.25, -1, 1.25, 1.5, -1.5}});
}

TEST_F(Layers, NearestRoundsItsScaleAsInPyTorch) {
  // F.interpolate(torch.tensor([[[[0., 1.]]]]), (1, 82)).sum() is 40, not 41
  const ValueId two = given(floats({1, 1, 1, 2}, {0, 1}));
  expect_value(reduce_sum(graph_, resize(graph_, two, {1, 82})), {}, {40});
}

TEST_F(Layers, NearestSmaller) {
  // x = leaf(ramp(1, 1, 5, 4)); y = F.interpolate(x, (3, 3))
  const ValueId x = given(ramp({1, 1, 5, 4})), y = resize(graph_, x, {3, 3});
  expect_value(y, {1, 1, 3, 3}, {-1.5, -0.25, 1, 0.25, 1.5, -0.5, 0.5, -1.5, -0.25});
  expect_gradients(y, {x}, {{-1.5, -0.25, 1, 0, -1, 0.25, 1.5, 0, 0, 0, 0, 0, -0.5, 0.75, -1.25, 0, 0, 0, 0, 0}});
}

TEST_F(Layers, BilinearLarger) {
  // x = leaf(ramp(1, 2, 2, 3)); y = F.interpolate(x, (5, 6), mode="bilinear", align_corners=False)
  const ValueId x = given(ramp({1, 2, 2, 3})), y = resize(graph_, x, {5, 6}, "bilinear");
  expect_value(y, {1, 2, 5, 6},
               {-1.5,  -1.1875, -0.5625, 0.0625, 0.6875, 1,    -1.45, -1.1375, -0.5125, 0.1125, 0.7375, 1.05,
                -1.25, -0.9375, -0.3125, 0.3125, 0.9375, 1.25, -1.05, -0.7375, -0.1125, 0.5125, 1.1375, 1.45,
                -1,    -0.6875, -0.0625, 0.5625, 1.1875, 1.5,  -0.5,  -0.1875, 0.4375,  0.25,   -0.75,  -1.25,
                -0.45, -0.1375, 0.4875,  0.3,    -0.7,   -1.2, -0.25, 0.0625,  0.6875,  0.5,    -0.5,   -1,
                -0.05, 0.2625,  0.8875,  0.7,    -0.3,   -0.8, 0,     0.3125,  0.9375,  0.75,   -0.25,  -0.75});
  expect_gradients(y, {x},
                   {{-1.875, -0.475, 1.575, 0.0625, -1.4625, 0.425, 1.8375, -0.175, -0.8875, 0.85, 1.1125, -0.7375}});
}

TEST_F(Layers, BilinearSmaller) {
  // x = leaf(ramp(1, 1, 5, 4)); y = F.interpolate(x, (2, 3), mode="bilinear", align_corners=False)
  const ValueId x = given(ramp({1, 1, 5, 4})), y = resize(graph_, x, {2, 3}, "bilinear");
  expect_value(y, {1, 1, 2, 3}, {0.020833333, 0.46875, 0.23958333, -0.072916667, -0.4375, 0.55208333});
  expect_gradients(y, {x},
                   {{-0.3125, -0.09375, 0.010416667, 0.20833333, -0.9375,     -0.28125,     0.03125, 0.625, 0, 0, 0, 0,
                     -0.625,  -0.03125, 0.28125,     0.9375,     -0.20833333, -0.010416667, 0.09375, 0.3125}});
}

TEST_F(Layers, AdaptivePoolingWithUnevenWindows) {
  // x = leaf(ramp(1, 2, 5, 4)); y = F.adaptive_avg_pool2d(x, (3, 3))
  const ValueId x = given(ramp({1, 2, 5, 4})), y = adaptive_avg_pool2d(graph_, x, {3, 3});
  expect_value(y, {1, 2, 3, 3},
               {0, 0.4375, 0.0625, -0.083333333, 0.083333333, 0.25, -0.4375, 0, 0.4375, -0.1875, -0.5625, -0.125, 0,
                -0.375, -0.20833333, 0.1875, -0.1875, -0.5625});
  expect_gradients(
      y, {x}, {{-0.375,      -0.4375,     0.1875,      0.25,        -0.54166667, -0.5625,     0.47916667,  0.5,
                -0.16666667, -0.125,      0.29166667,  0.25,        -0.29166667, -0.0625,     0.16666667,  -0.0625,
                -0.125,      0.0625,      -0.125,      -0.3125,     0,           0.3125,      0.125,       -0.1875,
                0.083333333, 0.14583333,  -0.16666667, -0.22916667, 0.083333333, -0.16666667, -0.29166667, -0.041666667,
                0.33333333,  -0.16666667, -0.47916667, 0.020833333, 0.25,        0,           -0.1875,     0.0625}});
}

TEST_F(Layers, AdaptivePoolingToALargerImage) {
  // x = leaf(ramp(1, 1, 2, 3)); y = F.adaptive_avg_pool2d(x, (3, 7))
  const ValueId x = given(ramp({1, 1, 2, 3})), y = adaptive_avg_pool2d(graph_, x, {3, 7});
  expect_value(y, {1, 1, 3, 7}, {-1.5,  -1.5, -0.875, -0.25, 0.375, 1,      1,    -1.25, -1.25, -0.625, 0,
                                 0.625, 1.25, 1.25,   -1,    -1,    -0.375, 0.25, 0.875, 1.5,   1.5});
}

TEST_F(Layers, AdaptivePoolingWithEqualWindowsIsAveragePooling) {
  // x = leaf(ramp(1, 2, 6, 4)); y = F.adaptive_avg_pool2d(x, (3, 1))
  const ValueId x = given(ramp({1, 2, 6, 4})), y = adaptive_avg_pool2d(graph_, x, {3, 1});
  EXPECT_EQ(graph_.producer(y)->op->name, "avg_pool2d");
  expect_value(y, {1, 2, 3, 1}, {0.03125, -0.125, 0.125, -0.03125, -0.1875, 0.0625});
}

TEST_F(Layers, OutputPaddingOfAStride) {
  const ValueId x = input("x", {1, 2, 4, 4}), w = input("w", {2, 3, 3, 3});
  EXPECT_EQ(shape_error([&] {
              conv_transpose2d(graph_, x, w, {.stride = {2, 2}, .output_padding = {0, 2}}, "up");
            }),
            "[conv_transpose2d] 'up': output_padding 2 must be at least 0 and below the stride 2");
}

TEST_F(Layers, TransposedConvolutionOfOtherChannels) {
  const ValueId x = input("x", {1, 5, 4, 4}), w = input("w", {2, 3, 3, 3});
  EXPECT_EQ(shape_error([&] { conv_transpose2d(graph_, x, w, {}, "up"); }),
            "[conv_transpose2d] 'up': wants images (N,C,H,W) and weights (C,O/groups,KH,KW), got 'x' (1,5,4,4) and 'w' "
            "(2,3,3,3)");
}

TEST_F(Layers, GroupsThatDoNotDivide) {
  const ValueId x = input("x", {1, 6, 4, 4}), s = input("s", {6});
  EXPECT_EQ(shape_error([&] { group_norm(graph_, x, s, s, 4, 1e-5, "norm"); }),
            "[group_norm] 'norm': 4 groups do not divide the 6 channels of 'x' (1,6,4,4)");
}

TEST_F(Layers, ScaleOfOtherChannels) {
  const ValueId x = input("x", {1, 6, 4, 4}), s = input("s", {3});
  EXPECT_EQ(shape_error([&] { instance_norm(graph_, x, s, s, 1e-5, "norm"); }),
            "[instance_norm] 'norm': wants one number for each of the 6 channels of 'x' (1,6,4,4), got 's' (3)");
}

TEST_F(Layers, UnknownInterpolation) {
  const ValueId x = input("x", {1, 6, 4, 4});
  EXPECT_EQ(shape_error([&] {
              resize(graph_, x, {8, 8}, "cubic", "up");
            }),
            "[resize] 'up': mode \"cubic\" is not known; give \"nearest\" or \"bilinear\"");
}

}  // namespace
}  // namespace weft::ops
