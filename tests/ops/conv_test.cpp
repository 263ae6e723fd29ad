#include "ops_fixture.h"

namespace weft::ops {
namespace {

class Conv : public OpsTest {
 protected:
  Shape output(Shape image, Shape weight, const Conv2dOptions& options = {}) {
    const ValueId x = input("image", std::move(image)), w = input("weight", std::move(weight));
    return graph_.shape(conv2d(graph_, x, w, options));
  }
  std::string error(Shape image, Shape weight, const Conv2dOptions& options = {}) {
    const ValueId x = input("image", std::move(image)), w = input("stem.weight", std::move(weight));
    return shape_error([&] { conv2d(graph_, x, w, options, "stem"); });
  }
};

// Output sizes as torch.nn.Conv2d documents them.
TEST_F(Conv, WithoutPaddingLosesTheBorder) { EXPECT_EQ(output({2, 3, 8, 9}, {4, 3, 3, 5}), Shape({2, 4, 6, 5})); }
TEST_F(Conv, StemOfResNet) {
  EXPECT_EQ(output({1, 3, 224, 224}, {64, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}), Shape({1, 64, 112, 112}));
}
TEST_F(Conv, StrideLeavesARest) {
  EXPECT_EQ(output({1, 1, 8, 8}, {1, 1, 3, 3}, {.stride = {2, 3}}), Shape({1, 1, 3, 2}));
}
TEST_F(Conv, DilationWidensTheKernel) {
  EXPECT_EQ(output({1, 1, 9, 9}, {1, 1, 3, 3}, {.dilation = {2, 4}}), Shape({1, 1, 5, 1}));
}
TEST_F(Conv, Depthwise) {
  EXPECT_EQ(output({2, 16, 5, 5}, {32, 1, 3, 3}, {.padding = {1, 1}, .groups = 16}), Shape({2, 32, 5, 5}));
}

TEST_F(Conv, FlopsOfEachDirection) {
  const ValueId x = input("x", {2, 4, 6, 6}), w = input("w", {8, 2, 3, 3});
  const ValueId y = conv2d(graph_, x, w, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2});
  ASSERT_EQ(graph_.shape(y), Shape({2, 8, 3, 3}));
  const int64_t expected = 2 * (2 * 8 * 3 * 3) * (2 * 3 * 3);  // 2 x outputs x weights per output channel
  const Attributes options{
      {"stride", std::vector<int64_t>{2, 2}}, {"padding", std::vector<int64_t>{1, 1}}, {"groups", int64_t{2}}};
  Attributes data = options, weights = options;
  data.set("input_size", std::vector<int64_t>{6, 6});
  weights.set("kernel", std::vector<int64_t>{3, 3});
  EXPECT_EQ(flops(y), expected);
  EXPECT_EQ(flops(graph_.add("conv2d_backward_data", {y, w}, data)), expected);
  EXPECT_EQ(flops(graph_.add("conv2d_backward_weights", {x, y}, weights)), expected);
}

TEST_F(Conv, BackwardOpsRestoreTheShapes) {
  const ValueId dy = input("dy", {2, 8, 3, 3}), w = input("w", {8, 4, 3, 3}), x = input("x", {2, 4, 6, 6});
  const std::vector<int64_t> stride{2, 2}, padding{1, 1};
  EXPECT_EQ(
      graph_.shape(graph_.add("conv2d_backward_data", {dy, w},
                              {{"stride", stride}, {"padding", padding}, {"input_size", std::vector<int64_t>{6, 6}}})),
      Shape({2, 4, 6, 6}));
  EXPECT_EQ(
      graph_.shape(graph_.add("conv2d_backward_weights", {x, dy},
                              {{"stride", stride}, {"padding", padding}, {"kernel", std::vector<int64_t>{3, 3}}})),
      Shape({8, 4, 3, 3}));
}

TEST_F(Conv, WrongChannels) {
  EXPECT_EQ(error({128, 1, 28, 28}, {64, 3, 7, 7}),
            "[conv2d] 'stem': weight (64,3,7,7) wants 3 input channels, got 1 from 'image' (128,1,28,28)");
}
TEST_F(Conv, WrongChannelsOfGroups) {
  EXPECT_EQ(error({1, 6, 8, 8}, {4, 2, 3, 3}, {.groups = 2}),
            "[conv2d] 'stem': weight (4,2,3,3) wants 4 input channels in 2 groups, got 6 from 'image' (1,6,8,8)");
}
TEST_F(Conv, GroupsDoNotDivideTheInput) {
  EXPECT_EQ(error({1, 5, 8, 8}, {4, 2, 3, 3}, {.groups = 2}),
            "[conv2d] 'stem': 2 groups do not divide the 5 input channels of 'image' (1,5,8,8); choose a divisor of 5");
}
TEST_F(Conv, GroupsDoNotDivideTheOutput) {
  EXPECT_EQ(error({1, 6, 8, 8}, {4, 2, 3, 3}, {.groups = 3}),
            "[conv2d] 'stem': 3 groups do not divide the 4 output channels of weight (4,2,3,3); choose a divisor of 4");
}
TEST_F(Conv, NoGroups) {
  EXPECT_EQ(error({1, 6, 8, 8}, {4, 6, 3, 3}, {.groups = 0}), "[conv2d] 'stem': groups must be at least 1, got 0");
}
TEST_F(Conv, FlatInput) {
  EXPECT_EQ(error({128, 784}, {64, 3, 7, 7}), "[conv2d] 'stem': input wants 4 dimensions, got 'image' (128,784)");
}
TEST_F(Conv, FlatWeight) {
  EXPECT_EQ(error({1, 3, 8, 8}, {64, 3}), "[conv2d] 'stem': weight wants 4 dimensions, got 'stem.weight' (64,3)");
}
TEST_F(Conv, EmptyKernel) {
  EXPECT_EQ(error({1, 3, 8, 8}, {4, 3, 0, 3}),
            "[conv2d] 'stem': weight (4,3,0,3) must have at least 1 output channel and a kernel of at least 1 x 1");
}
TEST_F(Conv, FewerFiltersThanGroups) {
  EXPECT_EQ(error({1, 6, 8, 8}, {0, 3, 3, 3}, {.groups = 2}),
            "[conv2d] 'stem': weight (0,3,3,3) must have at least 2 output channels and a kernel of at least 1 x 1");
}
TEST_F(Conv, GradientByAnEmptyKernel) {
  const ValueId dy = input("dy", {1, 4, 7, 7}), w = input("weight", {4, 3, 3, 0});
  EXPECT_EQ(shape_error([&] {
              graph_.add("conv2d_backward_data", {dy, w}, {{"input_size", std::vector<int64_t>{7, 7}}}, "back");
            }),
            "[conv2d_backward_data] 'back': weight (4,3,3,0) must have at least 1 output channel and a kernel of at "
            "least 1 x 1");
}
TEST_F(Conv, KernelLargerThanTheImage) {
  EXPECT_EQ(error({1, 3, 8, 2}, {4, 3, 5, 5}, {.padding = {1, 1}}),
            "[conv2d] 'stem': a kernel of 5 columns does not fit into 'image' (1,3,8,2) with padding 1: 2 + 2 x 1 = 4; "
            "pad more, or give larger images");
}
TEST_F(Conv, DilatedKernelLargerThanTheImage) {
  EXPECT_EQ(error({1, 3, 8, 8}, {4, 3, 3, 3}, {.dilation = {4, 1}}),
            "[conv2d] 'stem': a kernel of 9 rows does not fit into 'image' (1,3,8,8) with padding 0: 8 + 2 x 0 = 8; "
            "pad more, or give larger images");
}
TEST_F(Conv, ZeroStride) {
  EXPECT_EQ(error({1, 3, 8, 8}, {4, 3, 3, 3}, {.stride = {0, 1}}),
            "[conv2d] 'stem': stride must be at least 1, got [0,1]");
}
TEST_F(Conv, NegativePadding) {
  EXPECT_EQ(error({1, 3, 8, 8}, {4, 3, 3, 3}, {.padding = {0, -1}}),
            "[conv2d] 'stem': padding must be at least 0, got [0,-1]");
}
TEST_F(Conv, OneNumberForTwoAxes) {
  const ValueId x = input("image", {1, 3, 8, 8}), w = input("weight", {4, 3, 3, 3});
  EXPECT_EQ(shape_error([&] {
              graph_.add("conv2d", {x, w}, {{"stride", std::vector<int64_t>{2}}}, "stem");
            }),
            "[conv2d] 'stem': stride takes two numbers (height, width), got [2]");
}
TEST_F(Conv, IntegerImages) {
  const ValueId x = input("image", {1, 3, 8, 8}, DType::u8), w = input("weight", {4, 3, 3, 3});
  EXPECT_EQ(shape_error([&] { conv2d(graph_, x, w, {}, "stem"); }),
            "[conv2d] 'stem': input wants f32, got 'image' (1,3,8,8) of u8; add a cast");
}
TEST_F(Conv, GradientOfAnotherSize) {
  const ValueId dy = input("dy", {1, 4, 7, 7}), w = input("weight", {4, 3, 3, 3});
  EXPECT_EQ(shape_error([&] {
              graph_.add("conv2d_backward_data", {dy, w}, {{"input_size", std::vector<int64_t>{8, 8}}}, "back");
            }),
            "[conv2d_backward_data] 'back': a convolution of an image of 8 x 8 gives 6 x 6 positions, but the output "
            "gradient is 'dy' (1,4,7,7)");
}
TEST_F(Conv, GradientOfOtherChannels) {
  const ValueId dy = input("dy", {1, 5, 6, 6}), w = input("weight", {4, 3, 3, 3});
  EXPECT_EQ(shape_error([&] {
              graph_.add("conv2d_backward_data", {dy, w}, {{"input_size", std::vector<int64_t>{8, 8}}}, "back");
            }),
            "[conv2d_backward_data] 'back': weight (4,3,3,3) has 4 output channels, got 5 from 'dy' (1,5,6,6)");
}
TEST_F(Conv, GradientOfAnotherBatch) {
  const ValueId x = input("x", {2, 3, 8, 8}), dy = input("dy", {1, 4, 6, 6});
  EXPECT_EQ(shape_error([&] {
              graph_.add("conv2d_backward_weights", {x, dy}, {{"kernel", std::vector<int64_t>{3, 3}}}, "back");
            }),
            "[conv2d_backward_weights] 'back': 'x' (2,3,8,8) holds 2 images, but the output gradient 'dy' (1,4,6,6) "
            "holds 1");
}

}  // namespace
}  // namespace weft::ops
