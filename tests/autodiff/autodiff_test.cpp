#include "weft/autodiff/autodiff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

using testing::HasSubstr;

class Autodiff : public testing::Test {
 protected:
  ValueId input(const std::string& name, Shape shape) {
    return graph_.add_input(InputKind::parameter, name, {DType::f32, std::move(shape), {}});
  }
  float evaluate_scalar(ValueId value, const std::map<std::string, Tensor>& inputs) {
    graph_.add_output("result", value);
    return evaluate_graph(graph_, inputs, CpuBackend(1, reference_kernels())).at("result").data_as<float>()[0];
  }
  OpRegistry registry_ = ops::make_registry();
  Graph graph_{registry_, "test"};
};

TEST_F(Autodiff, ValueUsedTwiceAccumulates) {
  const ValueId x = input("x", {});
  const ValueId loss = ops::add(graph_, ops::multiply(graph_, x, x), x);  // x^2 + x
  const ValueId gradient = add_gradients(graph_, loss, {x}).front();
  EXPECT_FLOAT_EQ(evaluate_scalar(gradient, {{"x", Tensor::of({}, std::vector<float>{3})}}), 7);
}

TEST_F(Autodiff, BranchThatDoesNotReachTheLossAddsNothing) {
  const ValueId x = input("x", {});
  ops::exp(graph_, x, "unused");
  const ValueId loss = ops::multiply_scalar(graph_, x, 2);
  const ValueId gradient = add_gradients(graph_, loss, {x}).front();
  EXPECT_FLOAT_EQ(evaluate_scalar(gradient, {{"x", Tensor::of({}, std::vector<float>{5})}}), 2);
}

TEST_F(Autodiff, TargetWithoutInfluenceGetsZerosOfItsShape) {
  const ValueId x = input("x", {}), y = input("y", {2, 3});
  const ValueId gradient = add_gradients(graph_, ops::square(graph_, x), {y}).front();
  EXPECT_EQ(graph_.shape(gradient), (Shape{2, 3}));
  EXPECT_EQ(graph_.producer(gradient)->op->name, "constant");
}

TEST_F(Autodiff, SecondDerivativeOfSmoothOpsWorks) {
  const ValueId x = input("x", {});
  const ValueId loss = ops::multiply(graph_, x, ops::square(graph_, x));  // x^3
  const ValueId first = add_gradients(graph_, loss, {x}).front();
  const ValueId second = add_gradients(graph_, first, {x}).front();
  EXPECT_FLOAT_EQ(evaluate_scalar(second, {{"x", Tensor::of({}, std::vector<float>{2})}}), 12);
}

TEST_F(Autodiff, LossMustBeOneNumber) {
  const ValueId x = input("x", {3});
  try {
    add_gradients(graph_, x, {x});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'x' must be one f32 number"));
  }
}

TEST_F(Autodiff, OpWithoutGradientIsNamed) {
  const ValueId logits = input("logits", {2, 3});
  const ValueId labels = graph_.add_input(InputKind::batch, "labels", {DType::i32, {2}, {}});
  const ValueId correct = ops::count_correct(graph_, logits, labels, "accuracy");
  try {
    add_gradients(graph_, correct, {logits});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[count_correct] 'accuracy': this op has no gradient"));
  }
}

}  // namespace
}  // namespace weft
