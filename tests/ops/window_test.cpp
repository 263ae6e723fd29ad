#include "weft/ops/window.h"

#include <gtest/gtest.h>

namespace weft::ops {
namespace {

Attributes convolution(std::vector<int64_t> stride, std::vector<int64_t> dilation, int64_t groups) {
  return {{"stride", std::move(stride)}, {"dilation", std::move(dilation)}, {"groups", groups}};
}

TEST(Window, WinogradWantsThreeByThreePixelByPixelOverAllChannels) {
  const Shape weights{8, 4, 3, 3};
  EXPECT_TRUE(has_winograd_windows(weights, convolution({1, 1}, {1, 1}, 1)));
  EXPECT_FALSE(has_winograd_windows(weights, convolution({1, 2}, {1, 1}, 1)));
  EXPECT_FALSE(has_winograd_windows(weights, convolution({1, 1}, {2, 1}, 1)));
  EXPECT_FALSE(has_winograd_windows(weights, convolution({1, 1}, {1, 1}, 2)));
  EXPECT_FALSE(has_winograd_windows({8, 4, 3, 1}, convolution({1, 1}, {1, 1}, 1)));
  EXPECT_FALSE(has_winograd_windows({8, 4, 5, 3}, convolution({1, 1}, {1, 1}, 1)));
}

}  // namespace
}  // namespace weft::ops
