// What ops say of types that they do not take, and which ops gradients pass.
#include "tests/ops/ops_fixture.h"
#include "weft/autodiff/autodiff.h"

namespace weft::ops {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class IntegerOps : public OpsTest {};

TEST_F(IntegerOps, UnlikeTypesNameOpNodeAndValue) {
  const ValueId x = input("x", {2}, DType::i64), y = input("y", {2}, DType::i32);
  EXPECT_THAT(shape_error([&] { add(graph_, x, y, "sum"); }),
              AllOf(HasSubstr("[add] 'sum'"), HasSubstr("b wants i64, got 'y' (2) of i32; add a cast")));
  EXPECT_THAT(shape_error([&] { bitwise_and(graph_, x, y, "bits"); }), HasSubstr("[bitwise_and] 'bits'"));
  const ValueId holds = input("holds", {2}, DType::boolean);
  EXPECT_THAT(shape_error([&] { where(graph_, holds, x, y, "choice"); }),
              AllOf(HasSubstr("[where] 'choice'"), HasSubstr("b wants i64, got 'y' (2) of i32")));
}

TEST_F(IntegerOps, ComparisonsGiveBooleans) {
  const ValueId x = input("x", {2, 1}, DType::u8), y = input("y", {3}, DType::u8);
  EXPECT_EQ(graph_.type(less(graph_, x, y)), (TensorType{DType::boolean, {2, 3}, {}}));
  EXPECT_EQ(graph_.type(not_equal(graph_, x, y)).dtype, DType::boolean);
  const ValueId i = input("i", {2}, DType::i32);
  EXPECT_EQ(graph_.type(equal(graph_, i, i)).dtype, DType::f32);  // a mask to multiply with, as ever
}

TEST_F(IntegerOps, OnBitsWantIntegers) {
  EXPECT_THAT(shape_error([&] { bitwise_not(graph_, input("x", {2}), "bits"); }),
              HasSubstr("[bitwise_not] 'bits': x wants integers, got 'x' (2) of f32; add a cast"));
  EXPECT_THAT(shape_error([&] { logical_not(graph_, input("y", {2}, DType::u8), "no"); }),
              HasSubstr("[logical_not] 'no': x wants bool, got 'y' (2) of u8; add a cast"));
}

TEST_F(IntegerOps, UnknownTypesAreNamed) {
  EXPECT_THAT(shape_error([&] {
                graph_.add("cast", {input("x", {2})}, {{"dtype", "i46"}}, "narrow");
              }),
              AllOf(HasSubstr("[cast] 'narrow': dtype \"i46\" is not known"), HasSubstr("did you mean 'i")));
}

TEST_F(IntegerOps, NumbersThatATypeDoesNotHoldAreRefused) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_THAT(shape_error([&] { constant(graph_, DType::f32, {2}, odd, "c"); }),
              HasSubstr("[constant] 'c': value 9007199254740993 is no number of f32"));
  const Attributes padding{{"low", std::vector<int64_t>{1}}, {"high", std::vector<int64_t>{0}}, {"value", odd}};
  EXPECT_THAT(shape_error([&] { graph_.add("pad", {input("x", {2}, DType::i32)}, padding, "p"); }),
              HasSubstr("[pad] 'p': value 9007199254740993 is no number of i32"));
  try {
    graph_.add("add_scalar", {input("y", {2})}, {{"value", odd}}, "s");
    FAIL() << "takes it";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[add_scalar] 's': attribute 'value' is a real, which cannot hold "
                                        "9007199254740993 exactly"));
  }
}

TEST_F(IntegerOps, CountsAreNotNegative) {
  EXPECT_THAT(shape_error([&] { iota(graph_, DType::i32, -1); }),
              HasSubstr("[iota] 'iota': count must not be negative"));
}

TEST_F(IntegerOps, TakeFollowsTheTypesOfItsOperands) {
  const ValueId shape = input("shape", {4}, DType::i64), at = input("at", {2}, DType::i64);
  EXPECT_EQ(graph_.type(take(graph_, shape, at)), (TensorType{DType::i64, {2}, {}}));
  EXPECT_EQ(graph_.producer(take(graph_, shape, at))->op->name, "take");
  const ValueId table = input("table", {5, 3});
  EXPECT_EQ(graph_.type(take(graph_, table, at)), (TensorType{DType::f32, {2, 3}, {}}));
  EXPECT_NE(graph_.producer(take(graph_, table, at))->op->name, "take");  // composed, so that it is differentiable
  EXPECT_THAT(shape_error([&] { take(graph_, shape, at, 1, "t"); }), HasSubstr("[take] 't': axis 1 is not an axis of"));
  EXPECT_THAT(shape_error([&] { take(graph_, shape, input("f", {2}), 0, "t"); }),
              HasSubstr("indices wants i32, got 'f' (2) of f32"));
}

TEST_F(IntegerOps, GradientsThatWouldPassThemAreRefused) {
  const ValueId x = input("x", {4}), at = input("at", {2}, DType::i64);
  const ValueId taken = graph_.add("take", {x, at}, {}, "taken");
  const ValueId loss = reduce_sum(graph_, taken);
  try {
    add_gradients(graph_, loss, {x});
    FAIL() << "differentiates";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("take"), HasSubstr("taken")));
  }
}

TEST_F(IntegerOps, GradientsPassWhatIsComposed) {
  const ValueId x = input("x", {4}), at = input("at", {2}, DType::i64), mask = input("mask", {2}, DType::boolean);
  const ValueId zero = constant(graph_, {}, 0);
  const ValueId loss = reduce_sum(graph_, where(graph_, mask, take(graph_, x, at), zero));
  const std::vector<ValueId> gradients = add_gradients(graph_, loss, {x});
  EXPECT_EQ(graph_.type(gradients[0]), (TensorType{DType::f32, {4}, {}}));
}

}  // namespace
}  // namespace weft::ops
