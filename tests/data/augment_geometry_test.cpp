#include "weft/data/augment/augment_geometry.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::data {
namespace {

TEST(DrawRegion, LiesInThePictureWithTheSharesAndRatiosAskedFor) {
  double smallest = 1, largest = 0, shares = 0;
  constexpr int kDraws = 2000;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    RandomStream random(5, draw);
    const Region r = draw_region(300, 400, 0.25, random);
    ASSERT_TRUE(r.top >= 0 && r.left >= 0 && r.top + r.height <= 300 && r.left + r.width <= 400);
    const double share = static_cast<double>(r.height * r.width) / (300 * 400);
    const double ratio = static_cast<double>(r.width) / static_cast<double>(r.height);
    EXPECT_GT(ratio, 0.74);
    EXPECT_LT(ratio, 1.35);
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
    shares += share / kDraws;
  }
  EXPECT_NEAR(smallest, 0.25, 0.01);
  EXPECT_GT(largest, 0.95);
  EXPECT_NEAR(shares, 0.522, 0.015) << "of 200,000 draws of the same procedure in Python";
}

TEST(DrawRegion, TakesTheMiddleWhereNothingFits) {
  RandomStream random(5);
  const Region r = draw_region(10, 1000, 0.9, random);
  EXPECT_EQ(r.height, 10);
  EXPECT_EQ(r.width, 13);
  EXPECT_EQ(r.left, (1000 - 13) / 2);
}

TEST(CutOut, IsThePart) {
  Image image{2, 2, 3, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};
  EXPECT_EQ(cut_out(image, {1, 1, 1, 2}).pixels, (std::vector<uint8_t>{5, 6, 15, 16}));
}

std::vector<float> rotated(const std::vector<float>& source, const Shape& shape, double degrees, bool reflect = false) {
  std::vector<float> target(source.size(), -1.0f);
  rotate(source, shape, degrees, reflect, target);
  for (float& value : target) value = std::round(value * 1000) / 1000 + 0.0f;
  return target;
}

TEST(Rotate, QuarterTurnsMovePixelsAgainstTheClock) {
  const std::vector<float> source{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(rotated(source, {1, 3, 3}, 0), source);
  EXPECT_EQ(rotated(source, {1, 3, 3}, 90), (std::vector<float>{3, 6, 9, 2, 5, 8, 1, 4, 7}));  // numpy.rot90
  EXPECT_EQ(rotated(source, {1, 3, 3}, 180), (std::vector<float>{9, 8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(Rotate, WhatComesFromOutsideIsBlackOrMirrored) {
  const std::vector<float> source(81, 1.0f);
  EXPECT_EQ(rotated(source, {1, 9, 9}, 45)[0], 0);
  EXPECT_EQ(rotated(source, {1, 9, 9}, 45, true), source);
}

TEST(Rotate, InterpolatesBetweenPixels) {
  // One turn of 45 degrees: the corner of the middle ring lies sqrt(2) from the middle, on the axis.
  const std::vector<float> source{0, 0, 0, 0, 0, 4, 0, 0, 0};  // right of the middle
  const std::vector<float> target = rotated(source, {1, 3, 3}, 45);
  const double near = 1 / std::sqrt(2.0);
  // The place above the middle looks at (x, y) = (near, -near) from the middle.
  EXPECT_NEAR(target[1], 4 * near * (1 - near), 1e-3);
}

}  // namespace
}  // namespace weft::data
