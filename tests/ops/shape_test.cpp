#include "ops_fixture.h"

namespace weft::ops {
namespace {

using ShapeOps = OpsTest;

TEST_F(ShapeOps, ReshapeStoresTheOpenDimensionResolved) {
  const ValueId y = reshape(graph_, input("x", {2, 3, 4}), {-1, 6});
  EXPECT_EQ(graph_.shape(y), Shape({4, 6}));
  EXPECT_EQ(graph_.producer(y)->attributes.integers("shape"), std::vector<int64_t>({4, 6}));
}

TEST_F(ShapeOps, ReshapeIsAView) { EXPECT_TRUE(registry_.get("reshape").is_view); }

TEST_F(ShapeOps, TransposeMovesDimensions) {
  EXPECT_EQ(graph_.shape(transpose(graph_, input("x", {2, 3, 4}), {2, 0, 1})), Shape({4, 2, 3}));
}

TEST_F(ShapeOps, BroadcastToAddsAxes) {
  EXPECT_EQ(graph_.shape(broadcast_to(graph_, input("x", {3, 1}), {2, 3, 4})), Shape({2, 3, 4}));
}

TEST_F(ShapeOps, ConcatAddsUpTheAxis) {
  const ValueId y = concat(graph_, {input("a", {2, 3}), input("b", {2, 1})}, -1);
  EXPECT_EQ(graph_.shape(y), Shape({2, 4}));
  EXPECT_EQ(graph_.producer(y)->attributes.integer("axis"), 1);
}

TEST_F(ShapeOps, SliceAndPadChangeEachAxis) {
  const ValueId x = input("x", {4, 5});
  EXPECT_EQ(graph_.shape(slice(graph_, x, {1, 0}, {3, 5})), Shape({2, 5}));
  EXPECT_EQ(graph_.shape(pad(graph_, x, {1, 0}, {2, 3})), Shape({7, 8}));
}

TEST_F(ShapeOps, CastChangesTheType) {
  EXPECT_EQ(graph_.type(cast(graph_, input("x", {3}, DType::i32), DType::f32)), TensorType({DType::f32, {3}, {}}));
}

TEST_F(ShapeOps, ReorderTakesTheLayout) {
  const ValueId y = reorder(graph_, input("x", {2, 3, 4, 5}), channels_last(4));
  EXPECT_EQ(to_string(graph_.type(y)), "f32[2,3,4,5]@acdb");
}

TEST_F(ShapeOps, ConstantHasShapeAndType) {
  EXPECT_EQ(graph_.type(constant(graph_, {2, 3}, 1.5)), TensorType({DType::f32, {2, 3}, {}}));
}

TEST_F(ShapeOps, MovesAnyType) {
  EXPECT_EQ(graph_.type(reshape(graph_, input("tokens", {2, 3}, DType::i32), {6})).dtype, DType::i32);
}

TEST_F(ShapeOps, ReshapeToAnotherCount) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(shape_error([&] {
              reshape(graph_, x, {4, 2}, "flat");
            }),
            "[reshape] 'flat': 'x' (2,3) has 6 elements, they do not fit shape=[4,2]; give dimensions with that "
            "product");
}

TEST_F(ShapeOps, ReshapeWithAnOpenDimensionThatDoesNotDivide) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(shape_error([&] {
              reshape(graph_, x, {-1, 4}, "flat");
            }),
            "[reshape] 'flat': 'x' (2,3) has 6 elements, they do not fit shape=[-1,4]; give dimensions with that "
            "product");
}

TEST_F(ShapeOps, ReshapeWithTwoOpenDimensions) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(shape_error([&] {
              reshape(graph_, x, {-1, -1}, "flat");
            }),
            "[reshape] 'flat': 'x' (2,3) has 6 elements, they do not fit shape=[-1,-1]; give dimensions with that "
            "product");
}

TEST_F(ShapeOps, PermutationOfTheWrongLength) {
  const ValueId x = input("x", {2, 3, 4});
  EXPECT_EQ(shape_error([&] {
              transpose(graph_, x, {1, 0}, "t");
            }),
            "[transpose] 't': permutation=[1,0] wants one entry per axis of 'x' (2,3,4), 3, got 2");
}

TEST_F(ShapeOps, PermutationThatRepeatsAnAxis) {
  const ValueId x = input("x", {2, 3, 4});
  EXPECT_EQ(shape_error([&] {
              transpose(graph_, x, {0, 1, 1}, "t");
            }),
            "[transpose] 't': permutation=[0,1,1] must name each of the axes 0..2 of 'x' (2,3,4) once");
}

TEST_F(ShapeOps, BroadcastToASmallerShape) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(shape_error([&] { broadcast_to(graph_, x, {3}, "b"); }),
            "[broadcast_to] 'b': 'x' (2,3) does not broadcast to shape=[3]: aligned at the last axis, its dimensions "
            "must be equal or 1");
}

TEST_F(ShapeOps, BroadcastToANegativeSize) {
  const ValueId x = input("x", {3});
  EXPECT_EQ(shape_error([&] {
              broadcast_to(graph_, x, {-7, 3}, "b");
            }),
            "[broadcast_to] 'b': shape=[-7,3] has a negative dimension");
}

TEST_F(ShapeOps, ConcatOfDifferentImages) {
  const ValueId a = input("a", {2, 3, 4, 4}), b = input("b", {2, 3, 5, 5});
  EXPECT_EQ(shape_error([&] {
              concat(graph_, {a, b}, 1, "joined");
            }),
            "[concat] 'joined': 'a' (2,3,4,4) and 'b' (2,3,5,5) must be equal in every axis but 1");
}

TEST_F(ShapeOps, ConcatOfDifferentRanks) {
  const ValueId a = input("a", {2, 3}), b = input("b", {2});
  EXPECT_EQ(shape_error([&] {
              concat(graph_, {a, b}, 0, "joined");
            }),
            "[concat] 'joined': 'a' (2,3) and 'b' (2) must be equal in every axis but 0");
}

TEST_F(ShapeOps, ConcatAxisOutOfRange) {
  const ValueId a = input("a", {2, 3});
  EXPECT_EQ(shape_error([&] {
              concat(graph_, {a, a}, 2, "joined");
            }),
            "[concat] 'joined': axis 2 is not an axis of 'a' (2,3); give one of 0..1");
}

TEST_F(ShapeOps, ConcatOfMixedTypes) {
  const ValueId a = input("a", {2}), b = input("b", {2}, DType::i32);
  EXPECT_EQ(shape_error([&] {
              concat(graph_, {a, b}, 0, "joined");
            }),
            "[concat] 'joined': x... wants f32, got 'b' (2) of i32; add a cast");
}

TEST_F(ShapeOps, SliceBeyondTheEnd) {
  const ValueId x = input("x", {4, 5});
  EXPECT_EQ(shape_error([&] {
              slice(graph_, x, {0, 2}, {4, 6}, "part");
            }),
            "[slice] 'part': axis 1: [2,6) is no range within 'x' (4,5); give 0 <= start <= end <= 5");
}

TEST_F(ShapeOps, SliceBackwards) {
  const ValueId x = input("x", {4});
  EXPECT_EQ(shape_error([&] { slice(graph_, x, {3}, {2}, "part"); }),
            "[slice] 'part': axis 0: [3,2) is no range within 'x' (4); give 0 <= start <= end <= 4");
}

TEST_F(ShapeOps, PartsMayBeEmpty) {
  const ValueId x = input("x", {4, 5});
  EXPECT_EQ(graph_.shape(slice(graph_, x, {4, 0}, {4, 5})), Shape({0, 5}));
  const std::vector<ValueId> parts = split_sizes(graph_, x, {2, 0, 3}, 1);
  EXPECT_EQ(graph_.shape(parts[1]), Shape({4, 0}));
  EXPECT_EQ(graph_.shape(parts[2]), Shape({4, 3}));
}

TEST_F(ShapeOps, SliceOfTooFewAxes) {
  const ValueId x = input("x", {4, 5});
  EXPECT_EQ(shape_error([&] { slice(graph_, x, {0}, {4}, "part"); }),
            "[slice] 'part': starts=[0] wants one entry per axis of 'x' (4,5), 2, got 1");
}

TEST_F(ShapeOps, NegativePadding) {
  const ValueId x = input("x", {4});
  EXPECT_EQ(
      shape_error([&] { pad(graph_, x, {-1}, {0}, 0, "wide"); }),
      "[pad] 'wide': low=[-1] high=[0] cannot pad 'x' (4); padding is not negative (use slice to cut) nor endless");
}

TEST_F(ShapeOps, CastToAnUnknownType) {
  const ValueId x = input("x", {4});
  EXPECT_EQ(shape_error([&] {
              graph_.add("cast", {x}, {{"dtype", "f23"}}, "c");
            }),
            "[cast] 'c': dtype \"f23\" is not known; did you mean 'f32'?");
}

TEST_F(ShapeOps, ConstantOfNegativeSize) {
  EXPECT_EQ(shape_error([&] {
              constant(graph_, {2, -3}, 0, "zeros");
            }),
            "[constant] 'zeros': shape=[2,-3] has a negative dimension");
}

}  // namespace
}  // namespace weft::ops
