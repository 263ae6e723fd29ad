#include "ops_fixture.h"

namespace weft::ops {
namespace {

class Pool : public OpsTest {
 protected:
  std::string error(Shape image, const Pool2dOptions& options) {
    const ValueId x = input("image", std::move(image));
    return shape_error([&] { max_pool2d(graph_, x, options, "pool1"); });
  }
};

TEST_F(Pool, SizesAsInPyTorch) {
  const ValueId x = input("x", {2, 3, 112, 111});
  EXPECT_EQ(graph_.shape(max_pool2d(graph_, x, {{3, 3}, {2, 2}, {1, 1}})), Shape({2, 3, 56, 56}));
  EXPECT_EQ(graph_.shape(avg_pool2d(graph_, x, {{2, 2}, {2, 2}, {0, 0}})), Shape({2, 3, 56, 55}));
}
TEST_F(Pool, GlobalPoolsLeaveChannels) {
  const ValueId x = input("x", {2, 3, 7, 5});
  EXPECT_EQ(graph_.shape(global_avg_pool2d(graph_, x)), Shape({2, 3}));
  EXPECT_EQ(graph_.shape(global_max_pool2d(graph_, x, "pool")), Shape({2, 3}));
}
TEST_F(Pool, FlopsAreWindowElements) {
  EXPECT_EQ(flops(max_pool2d(graph_, input("x", {2, 3, 8, 8}), {{3, 3}, {2, 2}, {1, 1}})), 2 * 3 * 4 * 4 * 9);
}
TEST_F(Pool, BackwardRestoresTheImage) {
  const std::vector<int64_t> two{2, 2};
  const ValueId dy = input("dy", {2, 3, 2, 3});
  EXPECT_EQ(graph_.shape(graph_.add("avg_pool2d_backward", {dy},
                                    {{"kernel", two}, {"stride", two}, {"input_size", std::vector<int64_t>{5, 7}}})),
            Shape({2, 3, 5, 7}));
}

TEST_F(Pool, WindowLargerThanTheImage) {
  EXPECT_EQ(error({1, 16, 1, 8}, {}),
            "[max_pool2d] 'pool1': a kernel of 2 rows does not fit into 'image' (1,16,1,8) with padding 0: 1 + 2 x 0 = "
            "1; pad more, or give larger images");
}
TEST_F(Pool, WindowOfPaddingAlone) {
  EXPECT_EQ(error({1, 16, 8, 8}, {{2, 2}, {2, 2}, {2, 0}}),
            "[max_pool2d] 'pool1': padding [2,0] leaves windows of [2,2] without any pixel; pad less than the kernel");
}
TEST_F(Pool, EmptyKernel) {
  EXPECT_EQ(error({1, 16, 8, 8}, {{0, 2}, {2, 2}, {0, 0}}),
            "[max_pool2d] 'pool1': kernel must be at least 1, got [0,2]");
}
TEST_F(Pool, FlatImages) {
  EXPECT_EQ(error({8, 784}, {}), "[max_pool2d] 'pool1': input wants 4 dimensions, got 'image' (8,784)");
}
TEST_F(Pool, GlobalPoolOfRows) {
  const ValueId x = input("x", {8, 16});
  EXPECT_EQ(shape_error([&] { global_avg_pool2d(graph_, x, "pool"); }),
            "[avg_pool2d] 'pool': input wants 4 dimensions, got 'x' (8,16)");
}
TEST_F(Pool, WithoutKernel) {
  const ValueId x = input("x", {1, 1, 8, 8});
  try {
    graph_.add("max_pool2d", {x}, {{"stride", std::vector<int64_t>{2, 2}}}, "pool1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "[max_pool2d] 'pool1': attribute 'kernel' is required: rows and columns of a window");
  }
}
TEST_F(Pool, GradientOfAnotherSize) {
  const std::vector<int64_t> two{2, 2};
  const ValueId dy = input("dy", {1, 3, 4, 4}), x = input("x", {1, 3, 6, 6});
  EXPECT_EQ(
      shape_error([&] {
        graph_.add("max_pool2d_backward", {dy, x, dy}, {{"kernel", two}, {"stride", two}}, "back");
      }),
      "[max_pool2d_backward] 'back': pooling 'x' (1,3,6,6) gives 3 x 3 positions, but the output gradient is 'dy' "
      "(1,3,4,4)");
}

}  // namespace
}  // namespace weft::ops
