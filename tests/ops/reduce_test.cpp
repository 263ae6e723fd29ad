#include "ops_fixture.h"

namespace weft::ops {
namespace {

using Reduce = OpsTest;

TEST_F(Reduce, RemovesAxes) {
  const ValueId x = input("x", {2, 3, 4, 5});
  EXPECT_EQ(graph_.shape(reduce_sum(graph_, x, {1, -1})), Shape({2, 4}));
}

TEST_F(Reduce, KeepsAxesAsOnes) {
  const ValueId x = input("x", {2, 3, 4, 5});
  EXPECT_EQ(graph_.shape(reduce_mean(graph_, x, {0, 2, 3}, true)), Shape({1, 3, 1, 1}));
}

TEST_F(Reduce, EmptyAxesMeanAll) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(graph_.shape(reduce_max(graph_, x)), Shape{});
  EXPECT_EQ(graph_.shape(reduce_max(graph_, x, {}, true)), Shape({1, 1}));
}

TEST_F(Reduce, SoftmaxKeepsTheShape) {
  const ValueId x = input("x", {2, 3, 5});
  EXPECT_EQ(graph_.shape(softmax(graph_, x)), Shape({2, 3, 5}));
  EXPECT_EQ(graph_.shape(log_softmax(graph_, x, 1)), Shape({2, 3, 5}));
}

TEST_F(Reduce, SumToShapeIsNothingForEqualShapes) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(sum_to_shape(graph_, x, {2, 3}), x);
}

TEST_F(Reduce, SumToShapeSumsStretchedAndNewAxes) {
  const ValueId x = input("x", {2, 4, 3});
  const ValueId y = sum_to_shape(graph_, x, {4, 1});
  EXPECT_EQ(graph_.shape(y), Shape({4, 1}));
  const Node& sum = *graph_.producer(graph_.producer(y)->inputs[0]);
  EXPECT_EQ(sum.op->name, "reduce_sum");
  EXPECT_EQ(sum.attributes.integers("axes"), std::vector<int64_t>({0, 2}));
}

TEST_F(Reduce, SumToShapeOnlyReshapesWhereNothingStretched) {
  const ValueId y = sum_to_shape(graph_, input("x", {1, 3}), {3});
  EXPECT_EQ(graph_.producer(y)->op->name, "reshape");
  EXPECT_EQ(graph_.nodes().size(), 1u);
}

TEST_F(Reduce, AxisOutOfRange) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(shape_error([&] { reduce_sum(graph_, x, {2}, false, "total"); }),
            "[reduce_sum] 'total': axes: 2 is not an axis of 'x' (2,3); give one of -2..1");
}

TEST_F(Reduce, AxisNamedTwice) {
  const ValueId x = input("x", {2, 3});
  EXPECT_EQ(shape_error([&] {
              reduce_mean(graph_, x, {1, -1}, false, "mean");
            }),
            "[reduce_mean] 'mean': axes [1,-1] name axis 1 of 'x' (2,3) twice; name each axis once");
}

TEST_F(Reduce, IntegerOperand) {
  const ValueId x = input("labels", {2}, DType::i32);
  EXPECT_EQ(shape_error([&] { reduce_mean(graph_, x, {}, false, "top"); }),
            "[reduce_mean] 'top': x wants f32, got 'labels' (2) of i32; add a cast");
}

TEST_F(Reduce, SoftmaxAxisOutOfRange) {
  const ValueId x = input("logits", {2, 3});
  EXPECT_EQ(shape_error([&] { softmax(graph_, x, -3, "probabilities"); }),
            "[softmax] 'probabilities': axis -3 is not an axis of 'logits' (2,3); give one of -2..1");
}

TEST_F(Reduce, SoftmaxOfAScalar) {
  const ValueId x = input("x", {});
  EXPECT_EQ(shape_error([&] { log_softmax(graph_, x, -1, "p"); }),
            "[log_softmax] 'p': axis -1 is not an axis of 'x' (); a scalar has none");
}

}  // namespace
}  // namespace weft::ops
