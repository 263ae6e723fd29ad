#include <cmath>
#include <limits>

#include "ops_fixture.h"

namespace weft::ops {
namespace {

using Norm = OpsTest;

TEST_F(Norm, BatchNormGivesStatisticsPerChannel) {
  const auto result = batch_norm(graph_, input("x", {4, 6, 3, 3}), input("scale", {6}), input("shift", {6}));
  EXPECT_EQ(graph_.shape(result.output), Shape({4, 6, 3, 3}));
  EXPECT_EQ(graph_.shape(result.mean), Shape({6}));
  EXPECT_EQ(graph_.shape(result.variance), Shape({6}));
}

TEST_F(Norm, ResidualGradientIsAFourthOutput) {
  const ValueId x = input("x", {4, 6}), c = input("c", {6});
  EXPECT_EQ(graph_.add_node("batch_norm_backward", {x, x, c, c, c, c}).size(), 3u);
  EXPECT_EQ(graph_.add_node("batch_norm_backward", {x, x, c, c, c, c}, {{"residual_gradient", true}}).size(), 4u);
}

TEST_F(Norm, FlopsOfBatchNorm) {
  const ValueId x = input("x", {4, 6, 3, 3}), c = input("c", {6});
  EXPECT_EQ(flops(batch_norm(graph_, x, c, c).output), 6 * 4 * 6 * 9);
  EXPECT_EQ(flops(graph_.add("batch_norm", {x, c, c, x}, {{"activation", std::string("relu")}})), 8 * 4 * 6 * 9);
  EXPECT_EQ(flops(batch_norm_inference(graph_, x, c, c, c, c)), 2 * 4 * 6 * 9);
}

TEST_F(Norm, LayerNormGivesStatisticsPerRow) {
  const auto results = graph_.add_node("layer_norm", {input("x", {2, 5, 8}), input("scale", {8}), input("shift", {8})});
  EXPECT_EQ(graph_.shape(results[0]), Shape({2, 5, 8}));
  EXPECT_EQ(graph_.shape(results[1]), Shape({2, 5}));
  EXPECT_EQ(graph_.shape(results[2]), Shape({2, 5}));
}

TEST_F(Norm, ScaleOfOtherChannels) {
  const ValueId x = input("conv1", {4, 6, 3, 3}), scale = input("bn1.weight", {5}), shift = input("bn1.bias", {6});
  EXPECT_EQ(shape_error([&] { batch_norm(graph_, x, scale, shift, 1e-5, "bn1"); }),
            "[batch_norm] 'bn1': scale wants one number for each of the 6 channels of 'conv1' (4,6,3,3), got "
            "'bn1.weight' (5)");
}
TEST_F(Norm, VarianceOfOtherChannels) {
  const ValueId x = input("conv1", {4, 6, 3, 3}), c = input("c", {6}), v = input("bn1.running_var", {1, 6});
  EXPECT_EQ(shape_error([&] { batch_norm_inference(graph_, x, c, c, c, v, 1e-5, "bn1"); }),
            "[batch_norm_inference] 'bn1': variance wants one number for each of the 6 channels of 'conv1' (4,6,3,3), "
            "got 'bn1.running_var' (1,6)");
}
TEST_F(Norm, VolumesInBatchNorm) {
  const ValueId x = input("x", {4, 6, 3, 2, 2}), c = input("c", {6});
  EXPECT_EQ(shape_error([&] { batch_norm(graph_, x, c, c, 1e-5, "bn1"); }),
            "[batch_norm] 'bn1': input wants 2 or 4 dimensions (batch, channels, height, width), got 'x' (4,6,3,2,2)");
}
TEST_F(Norm, OneValuePerChannel) {
  const ValueId x = input("x", {1, 6, 1, 1}), c = input("c", {6});
  EXPECT_EQ(shape_error([&] { batch_norm(graph_, x, c, c, 1e-5, "bn1"); }),
            "[batch_norm] 'bn1': 'x' (1,6,1,1) has one value per channel, which has no variance; train with larger "
            "batches or images");
}
TEST_F(Norm, ResidualOfAnotherShape) {
  const ValueId x = input("x", {2, 6, 4, 4}), c = input("c", {6}), r = input("shortcut", {2, 6, 8, 8});
  EXPECT_EQ(shape_error([&] {
              graph_.add("batch_norm", {x, c, c, r}, {}, "bn1");
            }),
            "[batch_norm] 'bn1': 'shortcut' (2,6,8,8) and 'x' (2,6,4,4) must have the same shape");
}
TEST_F(Norm, UnknownActivation) {
  const ValueId x = input("x", {2, 6, 4, 4}), c = input("c", {6});
  EXPECT_EQ(shape_error([&] {
              graph_.add("batch_norm", {x, c, c}, {{"activation", std::string("gelu")}}, "bn1");
            }),
            "[batch_norm] 'bn1': activation is none, relu or relu6, got 'gelu'");
}
TEST_F(Norm, EpsilonBelowZeroOrEndless) {
  const ValueId x = input("x", {4, 6}), c = input("c", {6});
  for (const double epsilon : {-1e-5, std::numeric_limits<double>::infinity(), std::nan("")}) {
    const std::string wanted = fmt::format("'n': epsilon must be a number of at least 0, got {}", epsilon);
    EXPECT_EQ(shape_error([&] { batch_norm(graph_, x, c, c, epsilon, "n"); }), "[batch_norm] " + wanted);
    EXPECT_EQ(shape_error([&] { batch_norm_inference(graph_, x, c, c, c, c, epsilon, "n"); }),
              "[batch_norm_inference] " + wanted);
    EXPECT_EQ(shape_error([&] { layer_norm(graph_, x, c, c, epsilon, "n"); }), "[layer_norm] " + wanted);
  }
  EXPECT_EQ(shape_error([&] { layer_norm(graph_, x, c, c, 0); }), "");
}

TEST_F(Norm, MomentumAboveOne) {
  const ValueId running = input("running", {6}), sample = input("sample", {6});
  EXPECT_EQ(shape_error([&] { running_average(graph_, running, sample, 1.5, 1, "average"); }),
            "[running_average] 'average': momentum must lie between 0 and 1, got 1.5");
}
TEST_F(Norm, RunningAverageOfAnotherShape) {
  const ValueId running = input("running", {6}), sample = input("sample", {5});
  EXPECT_EQ(shape_error([&] { running_average(graph_, running, sample, 0.1, 1, "average"); }),
            "[running_average] 'average': 'running' (6) and 'sample' (5) must have the same shape");
}
TEST_F(Norm, LayerNormOverAnotherWidth) {
  const ValueId x = input("x", {2, 5, 8}), scale = input("ln.weight", {5}), shift = input("ln.bias", {8});
  EXPECT_EQ(shape_error([&] { layer_norm(graph_, x, scale, shift, 1e-5, "ln"); }),
            "[layer_norm] 'ln': scale wants one number for each of the 8 elements of a row of 'x' (2,5,8), got "
            "'ln.weight' (5)");
}
TEST_F(Norm, LayerNormOfAScalar) {
  const ValueId x = input("x", {}), c = input("c", {1});
  EXPECT_EQ(shape_error([&] { layer_norm(graph_, x, c, c, 1e-5, "ln"); }),
            "[layer_norm] 'ln': input wants at least 1 dimension, got 'x' ()");
}
TEST_F(Norm, LayerNormBackwardWithOtherRows) {
  const ValueId x = input("x", {2, 5, 8}), c = input("scale", {8}), mean = input("mean", {2});
  EXPECT_EQ(shape_error([&] {
              graph_.add("layer_norm_backward", {x, x, c, mean, mean}, {}, "back");
            }),
            "[layer_norm_backward] 'back': mean wants one number per row of 'x' (2,5,8), shape (2,5), got 'mean' (2)");
}

}  // namespace
}  // namespace weft::ops
