// Composed losses against PyTorch.
#include <cmath>
#include <limits>

#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

using ComposedLoss = ValuesTest;

TEST_F(ComposedLoss, Mse) {
  // x = leaf(ramp(3, 4)); t = ramp(3, 4, period=7); y = F.mse_loss(x, t, reduction="none").mean(1)
  const ValueId x = given(ramp({3, 4})), t = given(ramp({3, 4}, 7)), y = mse(graph_, x, t);
  expect_value(y, {3}, {0.59375, 1.03125, 2.09375});
  expect_gradients(y, {x},
                   {{0.5625, 0.5625, -0.75, 0.375, 0.0625, -0.15625, 0.03125, -0.1875, -0.875, 0, 0.875, -0.75}});
}

TEST_F(ComposedLoss, MseOfNumbers) {
  // x = leaf(ramp(3)); t = ramp(3, period=7); y = F.mse_loss(x, t, reduction="none")
  const ValueId x = given(ramp({3})), t = given(ramp({3}, 7)), y = mse(graph_, x, t);
  expect_value(y, {3}, {0.5625, 0.5625, 1});
}

TEST_F(ComposedLoss, L1) {
  // x = leaf(ramp(3, 4)); t = ramp(3, 4, period=7); y = F.l1_loss(x, t, reduction="none").mean(1)
  const ValueId x = given(ramp({3, 4})), t = given(ramp({3, 4}, 7)), y = l1(graph_, x, t);
  expect_value(y, {3}, {0.75, 0.875, 1.25});
  expect_gradients(y, {x}, {{0.375, 0.375, -0.375, 0.375, 0.0625, -0.0625, 0.0625, -0.0625, -0.25, 0, 0.25, -0.25}});
}

TEST_F(ComposedLoss, Huber) {
  // x = leaf(ramp(3, 4)); t = ramp(3, 4, period=7); y = F.huber_loss(x, t, delta=0.8, reduction="none").mean(1)
  const ValueId x = given(ramp({3, 4})), t = given(ramp({3, 4}, 7)), y = huber(graph_, x, t, 0.8);
  expect_value(y, {3}, {0.291875, 0.4290625, 0.76});
  expect_gradients(y, {x}, {{0.28125, 0.28125, -0.3, 0.1875, 0.03125, -0.05, 0.015625, -0.05, -0.2, 0, 0.2, -0.2}});
}

TEST_F(ComposedLoss, SmoothL1) {
  // x = leaf(ramp(3, 4)); t = ramp(3, 4, period=7); y = F.smooth_l1_loss(x, t, beta=0.6, reduction="none").mean(1)
  const ValueId x = given(ramp({3, 4})), t = given(ramp({3, 4}, 7)), y = smooth_l1(graph_, x, t, 0.6);
  expect_value(y, {3}, {0.45208333, 0.60260417, 1.025});
  expect_gradients(y, {x},
                   {{0.375, 0.375, -0.375, 0.3125, 0.052083333, -0.0625, 0.026041667, -0.0625, -0.25, 0, 0.25, -0.25}});
}

TEST_F(ComposedLoss, BinaryCrossEntropy) {
  // x = leaf(ramp(3, 4, scale=4)); t = ramp(3, 4, period=7).sigmoid().float().double()
  // y = F.binary_cross_entropy_with_logits(x, t, reduction="none").mean(1)
  const ValueId x = given(ramp({3, 4}, 13, 4));
  const ValueId t = given(floats({3, 4}, {0.32082132, 0.62245935, 0.5, 0.37754068, 0.67917871, 0.56217653, 0.4378235,
                                          0.32082132, 0.62245935, 0.5, 0.37754068, 0.67917871}));
  const ValueId y = bce_with_logits(graph_, x, t);
  expect_value(y, {3}, {6.0620875, 5.8655681, 8.4354178}, 1e-5);
  expect_gradients(y, {x},
                   {{0.12030799, 0.22667743, -0.18749996, 0.14157771, -0.018927192, -0.027363967, 0.02734301,
                     -0.042448284, -0.15561484, 0, 0.15561483, -0.16979314}});
}

TEST_F(ComposedLoss, BinaryCrossEntropyWithWeightsOfPositives) {
  // x = leaf(ramp(2, 3)); t = torch.tensor([[1, 0, 1], [0, 0, 1.]]).double(); w = torch.tensor([2, 1, 0.5]).double()
  // y = F.binary_cross_entropy_with_logits(x, t, pos_weight=w, reduction="none").mean(1)
  const ValueId x = given(ramp({2, 3})), t = given(floats({2, 3}, {1, 0, 1, 0, 0, 1}));
  const ValueId y = bce_with_logits(graph_, x, t, "", given(floats({3}, {2, 1, 0.5f})));
  expect_value(y, {2}, {1.3784656, 0.41330258});
  expect_gradients(y, {x}, {{0.81757448, -0.21891175, 0.067235355, -0.022411785, -0.046848042, 0.0076010635}});
}

TEST_F(ComposedLoss, BinaryCrossEntropyDoesNotOverflow) {
  const ValueId x = given(floats({4}, {200, -200, 200, -200})), t = given(floats({4}, {1, 0, 0, 1}));
  expect_value(bce_with_logits(graph_, x, t), {4}, {0, 0, 200, 200});
}

TEST_F(ComposedLoss, SoftTargets) {
  // x = leaf(ramp(3, 4)); t = ramp(3, 4, period=7).softmax(1).float().double()
  // y = F.cross_entropy(x, t, reduction="none")
  const ValueId x = given(ramp({3, 4}));
  const ValueId t = given(floats({3, 4}, {0.12672074, 0.44229883, 0.26826781, 0.16271265, 0.45505422, 0.27600434,
                                          0.1674051, 0.10153633, 0.30689573, 0.18614168, 0.11290064, 0.39406195}));
  const ValueId y = soft_cross_entropy(graph_, x, t);
  expect_value(y, {3}, {1.6031791, 1.6185803, 2.1961188});
  expect_gradients(y, {x},
                   {{0.10821034, 0.37769118, -0.59498842, 0.1090869, 0.075950259, -0.06298029, 0.023989538,
                     -0.036959506, -0.25231522, 0.0043630174, 0.55202611, -0.3040739}});
}

TEST_F(ComposedLoss, IgnoredLabels) {
  // x = leaf(ramp(4, 3)); l = torch.tensor([2, -100, 0, 1]); y = F.cross_entropy(x, l, reduction="none")
  // m = F.cross_entropy(x, l)
  const ValueId x = given(ramp({4, 3})), l = given(integers({4}, {2, -100, 0, 1}));
  const ValueId y = cross_entropy(graph_, x, l), m = mean_cross_entropy(graph_, x, l);
  expect_value(y, {4}, {0.31378086, 0, 1.6019519, 0.35195186});
  expect_value(m, {}, {0.75589486});
  expect_gradients(y, {x},
                   {{-0.089966693, -0.31401461, 0.40398131, 0, 0, 0, -0.79849717, 0.70331398, 0.095183196, -0.20150283,
                     0.29668602, -0.095183196}});
  expect_gradients(m, {x},
                   {{-0.029988898, -0.10467154, 0.13466044, 0, 0, 0, 0.39924859, -0.35165699, -0.047591598, -0.10075141,
                     0.14834301, -0.047591598}});
}

TEST_F(ComposedLoss, IgnoredClassWithSmoothing) {
  // x = leaf(ramp(4, 3)); l = torch.tensor([2, 1, 0, 1])
  // y = F.cross_entropy(x, l, ignore_index=1, label_smoothing=0.1, reduction="none")
  const ValueId x = given(ramp({4, 3})), l = given(integers({4}, {2, 1, 0, 1}));
  const ValueId y = cross_entropy(graph_, x, l, {.label_smoothing = 0.1, .ignore_index = 1});
  expect_value(y, {4}, {0.43878086, 0, 1.5852852, 0});
  expect_gradients(y, {x},
                   {{-0.039966693, -0.26401461, 0.30398131, 0, 0, 0, -0.73183051, 0.66998064, 0.061849863, 0, 0, 0}});
}

TEST_F(ComposedLoss, ClassWeights) {
  // x = leaf(ramp(4, 3)); l = torch.tensor([2, 0, 0, 1]); w = torch.tensor([0.5, 2, 1]).double()
  // y = F.cross_entropy(x, l, w, reduction="none"); m = F.cross_entropy(x, l, w)
  const ValueId x = given(ramp({4, 3})), l = given(integers({4}, {2, 0, 0, 1})), w = given(floats({3}, {0.5f, 2, 1}));
  const ValueId y = cross_entropy(graph_, x, l, {.class_weights = w});
  const ValueId m = mean_cross_entropy(graph_, x, l, {.class_weights = w});
  expect_value(y, {4}, {0.31378086, 1.4068904, 0.80097593, 0.70390373});
  expect_value(m, {}, {0.80638774});
  expect_gradients(m, {x},
                   {{-0.022491673, -0.078503653, 0.10099533, 0.17625416, -0.039251827, -0.13700234, 0.14971822,
                     -0.13187137, -0.017846849, -0.15112712, 0.22251452, -0.071387397}});
}

TEST_F(ComposedLoss, ClassWeightsWithSmoothing) {
  // x = leaf(ramp(4, 3)); l = torch.tensor([2, 0, 0, 1]); w = torch.tensor([0.5, 2, 1]).double()
  // m = F.cross_entropy(x, l, w, label_smoothing=0.2)
  const ValueId x = given(ramp({4, 3})), l = given(integers({4}, {2, 0, 0, 1})), w = given(floats({3}, {0.5f, 2, 1}));
  const ValueId m = mean_cross_entropy(graph_, x, l, {.label_smoothing = 0.2, .class_weights = w});
  expect_value(m, {}, {0.93527901});
  expect_gradients(m, {x},
                   {{-0.010741396, -0.031120442, 0.041861837, 0.14825527, 0.00028101957, -0.14853629, 0.11464308,
                     -0.11703707, 0.0023939909, -0.12603319, 0.16647164, -0.040438447}});
}

TEST_F(ComposedLoss, ClassWeightsWithAnIgnoredClass) {
  // x = leaf(ramp(4, 3)); l = torch.tensor([2, 0, -100, 1]); w = torch.tensor([0.5, 2, 1]).double()
  // m = F.cross_entropy(x, l, w); k = F.cross_entropy(x, l.clamp(0), w, ignore_index=0)
  const ValueId x = given(ramp({4, 3})), l = given(integers({4}, {2, 0, -100, 1})),
                w = given(floats({3}, {0.5f, 2, 1}));
  expect_value(mean_cross_entropy(graph_, x, l, {.class_weights = w}), {}, {0.69273572});
  const ValueId k = given(integers({4}, {2, 0, 0, 1}));
  expect_value(mean_cross_entropy(graph_, x, k, {.ignore_index = 0, .class_weights = w}), {}, {0.3392282});
}

TEST_F(ComposedLoss, ClassWeightsAndALabelThatIsNoClass) {
  const ValueId x = given(ramp({2, 5})), l = given(integers({2}, {3, 7})), w = given(floats({5}, {1, 2, 1, 2, 1}));
  for (const double smoothing : {0.0, 0.2}) {
    const CrossEntropyOptions options{.label_smoothing = smoothing, .class_weights = w};
    const Tensor losses = value_of(cross_entropy(graph_, x, l, options));
    EXPECT_TRUE(std::isfinite(losses.data_as<float>()[0]));
    EXPECT_TRUE(std::isnan(losses.data_as<float>()[1]));
    EXPECT_TRUE(std::isnan(*value_of(mean_cross_entropy(graph_, x, l, options)).data_as<float>()));
  }
}

TEST_F(ComposedLoss, ClassWeightsAndALogitOfMinusInfinity) {
  // x = leaf(torch.tensor([[1, 2, -math.inf]])); w = torch.tensor([0.5, 2, 1])
  // y = F.cross_entropy(x, torch.tensor([0]), w, reduction="none"); m = F.cross_entropy(x, torch.tensor([0]), w)
  const ValueId x = given(floats({1, 3}, {1, 2, -std::numeric_limits<float>::infinity()}));
  const ValueId l = given(integers({1}, {0})), w = given(floats({3}, {0.5f, 2, 1}));
  expect_value(cross_entropy(graph_, x, l, {.class_weights = w}), {1}, {0.65663081});
  expect_value(mean_cross_entropy(graph_, x, l, {.class_weights = w}), {}, {1.3132617});
}

TEST_F(ComposedLoss, ClassWeightsAndANaNInAnIgnoredRow) {
  // x = leaf(torch.tensor([[1, 2, 0.5], [math.nan, 0, 1]])); w = torch.tensor([0.5, 2, 1])
  // m = F.cross_entropy(x, torch.tensor([0, -100]), w); s = F.cross_entropy(x, .., w, label_smoothing=0.2)
  const ValueId x = given(floats({2, 3}, {1, 2, 0.5f, NAN, 0, 1}));
  const ValueId l = given(integers({2}, {0, -100})), w = given(floats({3}, {0.5f, 2, 1}));
  const ValueId m = mean_cross_entropy(graph_, x, l, {.class_weights = w});
  expect_value(m, {}, {1.4643688});
  expect_value(mean_cross_entropy(graph_, x, l, {.label_smoothing = 0.2, .class_weights = w}), {}, {1.6548671});
  // PyTorch's gradient of the ignored row is NaN; weft's is 0.
  expect_gradients(m, {x}, {{1.1532, -0.9428, -0.2104, 0, 0, 0}}, 1e-4);
}

TEST_F(ComposedLoss, ClassesOfEveryPixel) {
  // x = leaf(ramp(2, 3, 1, 2)); l = torch.tensor([[[0, 2]], [[1, -100]]]); y = F.cross_entropy(x, l, reduction="none")
  // m = F.cross_entropy(x, l)
  const ValueId x = given(ramp({2, 3, 1, 2})), l = given(integers({2, 1, 2}, {0, 2, 1, -100}));
  const ValueId y = cross_entropy(graph_, x, l, CrossEntropyOptions{}), m = mean_cross_entropy(graph_, x, l);
  expect_value(y, {2, 1, 2}, {2.9411228, 0.22781975, 2.7278198, 0});
  expect_value(m, {}, {1.9655874});
  expect_gradients(y, {x},
                   {{1.4207904, -0.034592648, -0.96497057, -0.01634041, -0.45581982, 0.050933057, 0.13837059, 0,
                     -0.93463836, 0, 0.79626777, 0}});
}

TEST_F(ComposedLoss, TargetsOfAnotherShape) {
  const ValueId x = input("x", {4, 1}), t = input("t", {4});
  EXPECT_EQ(shape_error([&] { mse(graph_, x, t, "loss"); }),
            "[mse] 'loss': 'x' (4,1) and 't' (4) must have the same shape; reshape one of them");
}

TEST_F(ComposedLoss, LabelsOfAnotherImage) {
  const ValueId x = input("x", {2, 3, 4, 4}), l = input("l", {2, 4, 5}, DType::i32);
  EXPECT_EQ(shape_error([&] { mean_cross_entropy(graph_, x, l, {}, "loss"); }),
            "[cross_entropy] 'loss': logits (N,classes,..) want labels (N,..), got 'x' (2,3,4,4) and 'l' (2,4,5)");
}

TEST_F(ComposedLoss, WeightsOfOtherClasses) {
  const ValueId x = input("x", {2, 3}), l = input("l", {2}, DType::i32), w = input("w", {4});
  EXPECT_EQ(shape_error([&] { mean_cross_entropy(graph_, x, l, {.class_weights = w}, "loss"); }),
            "[cross_entropy] 'loss': 3 classes want as many weights, got 'w' (4)");
}

}  // namespace
}  // namespace weft::ops
