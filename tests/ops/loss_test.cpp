#include "ops_fixture.h"

namespace weft::ops {
namespace {

using Loss = OpsTest;

TEST_F(Loss, OneLossPerRow) {
  const ValueId logits = input("logits", {4, 10}), labels = input("labels", {4}, DType::i32);
  EXPECT_EQ(graph_.shape(cross_entropy(graph_, logits, labels, 0.1)), Shape({4}));
}

TEST_F(Loss, CountIsAScalar) {
  const ValueId logits = input("logits", {4, 10}), labels = input("labels", {4}, DType::i32);
  EXPECT_EQ(graph_.type(count_correct(graph_, logits, labels)), TensorType({DType::f32, {}, {}}));
}

TEST_F(Loss, GradientKeepsTheSmoothing) {
  const ValueId logits = input("logits", {4, 10}), labels = input("labels", {4}, DType::i32);
  const ValueId losses = cross_entropy(graph_, logits, labels, 0.1, "loss");
  const ValueId dy = input("dy", {4});
  GradContext context{graph_, graph_.value(losses).producer, {logits, labels}, {losses}, {dy}};
  const auto gradients = registry_.get("cross_entropy").gradient(context);
  EXPECT_FALSE(gradients[1].valid());
  EXPECT_EQ(graph_.producer(gradients[0])->attributes.real("label_smoothing"), 0.1);
}

TEST_F(Loss, LabelsOfAnotherBatch) {
  const ValueId logits = input("logits", {4, 10}), labels = input("labels", {5}, DType::i32);
  EXPECT_EQ(shape_error([&] { cross_entropy(graph_, logits, labels, 0, "loss"); }),
            "[cross_entropy] 'loss': 'logits' (4,10) wants one label per row, 4 labels, got 5 from 'labels' (5)");
}

TEST_F(Loss, LogitsThatAreAnImage) {
  const ValueId logits = input("logits", {4, 10, 1, 1}), labels = input("labels", {4}, DType::i32);
  EXPECT_EQ(shape_error([&] { cross_entropy(graph_, logits, labels, 0, "loss"); }),
            "[cross_entropy] 'loss': logits wants 2 dimensions, got 'logits' (4,10,1,1)");
}

TEST_F(Loss, LabelsThatAreReals) {
  const ValueId logits = input("logits", {4, 10}), labels = input("labels", {4});
  EXPECT_EQ(shape_error([&] { count_correct(graph_, logits, labels, "right"); }),
            "[count_correct] 'right': labels wants i32, got 'labels' (4) of f32; add a cast");
}

TEST_F(Loss, OneHotLabels) {
  const ValueId logits = input("logits", {4, 10}), labels = input("labels", {4, 10}, DType::i32);
  EXPECT_EQ(shape_error([&] { cross_entropy(graph_, logits, labels, 0, "loss"); }),
            "[cross_entropy] 'loss': labels wants 1 dimensions, got 'labels' (4,10)");
}

TEST_F(Loss, SmoothingOfOne) {
  const ValueId logits = input("logits", {4, 10}), labels = input("labels", {4}, DType::i32);
  EXPECT_EQ(shape_error([&] { cross_entropy(graph_, logits, labels, 1, "loss"); }),
            "[cross_entropy] 'loss': label_smoothing 1 is out of range; give a number from 0 to below 1");
}

TEST_F(Loss, GradientOfAnotherBatch) {
  const ValueId dy = input("dy", {3}), logits = input("logits", {4, 10}), labels = input("labels", {4}, DType::i32);
  EXPECT_EQ(shape_error([&] {
              graph_.add("cross_entropy_backward", {dy, logits, labels}, {}, "back");
            }),
            "[cross_entropy_backward] 'back': 'dy' (3) and 'labels' (4) must have the same shape");
}

}  // namespace
}  // namespace weft::ops
