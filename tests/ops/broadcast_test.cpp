#include "weft/ops/broadcast.h"

#include <gtest/gtest.h>

namespace weft::ops {
namespace {

TEST(BroadcastShapes, KeepsEqualShapes) { EXPECT_EQ(broadcast_shapes({2, 3}, {2, 3}), Shape({2, 3})); }

TEST(BroadcastShapes, AlignsAtTheLastAxis) {
  EXPECT_EQ(broadcast_shapes({5}, {2, 3, 5}), Shape({2, 3, 5}));
  EXPECT_EQ(broadcast_shapes({2, 3, 5}, {5}), Shape({2, 3, 5}));
}

TEST(BroadcastShapes, StretchesOnesOnBothSides) { EXPECT_EQ(broadcast_shapes({2, 1, 3}, {4, 1}), Shape({2, 4, 3})); }

TEST(BroadcastShapes, TakesScalars) {
  EXPECT_EQ(broadcast_shapes({}, {2, 3}), Shape({2, 3}));
  EXPECT_EQ(broadcast_shapes({}, {}), Shape{});
}

TEST(BroadcastShapes, RefusesOtherDimensions) {
  EXPECT_EQ(broadcast_shapes({3}, {4}), std::nullopt);
  EXPECT_EQ(broadcast_shapes({3, 2}, {3}), std::nullopt);
}

TEST(BroadcastsTo, DoesNotStretchTheTarget) {
  EXPECT_TRUE(broadcasts_to({1, 3, 1, 1}, {2, 3, 4, 5}));
  EXPECT_FALSE(broadcasts_to({2, 3}, {1, 3}));
  EXPECT_FALSE(broadcasts_to({1, 3}, {3}));
}

TEST(NormalizeAxis, CountsFromTheEnd) {
  EXPECT_EQ(normalize_axis(-1, 4), 3);
  EXPECT_EQ(normalize_axis(-4, 4), 0);
  EXPECT_EQ(normalize_axis(2, 4), 2);
}

TEST(NormalizeAxis, RefusesAxesOutOfRange) {
  EXPECT_EQ(normalize_axis(4, 4), std::nullopt);
  EXPECT_EQ(normalize_axis(-5, 4), std::nullopt);
  EXPECT_EQ(normalize_axis(0, 0), std::nullopt);
}

TEST(NormalizeAxes, SortsAndTakesAllWhereEmpty) {
  EXPECT_EQ(normalize_axes({-1, 0}, 3), std::vector<int>({0, 2}));
  EXPECT_EQ(normalize_axes({}, 3), std::vector<int>({0, 1, 2}));
  EXPECT_TRUE(normalize_axes({}, 0).empty());
}

}  // namespace
}  // namespace weft::ops
