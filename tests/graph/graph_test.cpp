#include "weft/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/graph/rewrite.h"
#include "weft/graph/text.h"
#include "weft/graph/verify.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

using testing::HasSubstr;

class GraphTest : public testing::Test {
 protected:
  template <typename Action>
  std::string error_of(Action action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  OpRegistry registry_ = ops::make_registry();
  Graph graph_{registry_, "test"};
};

TEST_F(GraphTest, NamesAreMadeUnique) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {2}, {}});
  const ValueId first = graph_.add("relu", {x}, {}, "act"), second = graph_.add("relu", {x}, {}, "act");
  EXPECT_EQ(graph_.value(first).name, "act");
  EXPECT_EQ(graph_.value(second).name, "act_2");
}

TEST_F(GraphTest, OddCharactersInNamesBecomeUnderscores) {
  const ValueId x = graph_.add_input(InputKind::batch, "my input %", {DType::f32, {2}, {}});
  EXPECT_EQ(graph_.value(x).name, "my_input__");
}

TEST_F(GraphTest, WrongOperandCountNamesOpAndCount) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {2}, {}});
  EXPECT_THAT(error_of([&] { graph_.add("add", {x}, {}, "sum"); }), HasSubstr("[add] 'sum': wants 2 operands, got 1"));
}

TEST_F(GraphTest, WrongAttributeKindNamesBoth) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {2}, {}});
  EXPECT_THAT(error_of([&] {
                graph_.add("softmax", {x}, {{"axis", std::string("last")}});
              }),
              HasSubstr("attribute 'axis' wants integer, got \"last\" (text)"));
}

TEST_F(GraphTest, MissingRequiredAttributeIsNamed) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {2}, {}});
  EXPECT_THAT(error_of([&] { graph_.add("reshape", {x}); }), HasSubstr("attribute 'shape' is required"));
}

TEST_F(GraphTest, DuplicateInputIsAnError) {
  graph_.add_input(InputKind::batch, "x", {DType::f32, {2}, {}});
  EXPECT_THAT(error_of([&] {
                graph_.add_input(InputKind::state, "x", {DType::f32, {2}, {}});
              }),
              HasSubstr("'x' already"));
}

TEST_F(GraphTest, UpdateOfAnotherShapeIsAnError) {
  graph_.add_input(InputKind::parameter, "w", {DType::f32, {2}, {}});
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {3}, {}});
  EXPECT_THAT(error_of([&] { graph_.add_update("w", x); }), HasSubstr("state f32[2] cannot become f32[3]"));
}

TEST_F(GraphTest, UpdateOfNoStateIsAnError) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {3}, {}});
  EXPECT_THAT(error_of([&] { graph_.add_update("x", x); }), HasSubstr("no state 'x'"));
}

TEST_F(GraphTest, InPlaceMustBeAllowedByTheOp) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {2, 3}, {}});
  const Attributes attributes{{"permutation", std::vector<int64_t>{1, 0}}, {"in_place", std::vector<int64_t>{0, 0}}};
  EXPECT_THAT(error_of([&] { graph_.add("transpose", {x}, attributes); }), HasSubstr("in_place"));
}

TEST_F(GraphTest, UsersAreListedOncePerOperand) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {2}, {}});
  graph_.add("multiply", {x, x});
  EXPECT_EQ(find_users(graph_)[0].size(), 2u);
}

TEST_F(GraphTest, RewriterCopiesTheSameGraph) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {2, 16, 4, 4}, {}});
  const ValueId y = graph_.add("relu", {x}, {}, "y");
  graph_.set_layout(y, parse_layout("aBcd16b", 4));
  graph_.add_output("y", y);
  Rewriter rewriter(graph_);
  for (size_t index = 0; index < graph_.nodes().size(); ++index) rewriter.copy(NodeId{static_cast<int32_t>(index)});
  EXPECT_EQ(print_graph(rewriter.finish()), print_graph(graph_));
}

TEST_F(GraphTest, VerifierNamesTheStageThatBrokeALayout) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {2, 3}, {}});
  graph_.set_layout(x, Layout{{0, 0}, {}});
  EXPECT_THAT(error_of([&] { verify(graph_, "my_pass"); }), HasSubstr("after my_pass: 'x' has a broken layout"));
}

TEST_F(GraphTest, VerifierWantsUpdatesInTheLayoutOfTheirState) {
  const ValueId w = graph_.add_input(InputKind::parameter, "w", {DType::f32, {16, 16}, {}});
  const ValueId next = graph_.add("multiply_scalar", {w}, {{"value", 0.5}}, "next");
  graph_.set_layout(next, parse_layout("ba", 2));
  graph_.add_update("w", next);
  EXPECT_THAT(error_of([&] { verify(graph_, "my_pass"); }), HasSubstr("its successor is f32[16,16]@ba"));
}

TEST_F(GraphTest, VerifierWantsKeptCopiesToShowAState) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {16}, {}});
  graph_.add("cast", {x}, {{"dtype", "bf16"}, {"kept", true}}, "copy");
  EXPECT_THAT(error_of([&] { verify(graph_, "my_pass"); }),
              HasSubstr("'copy' is kept from step to step but no copy of a state"));
}

TEST_F(GraphTest, VerifierWantsTheCopiesOfUpdatedStatesRenewed) {
  const ValueId w = graph_.add_input(InputKind::parameter, "w", {DType::f32, {16}, {}});
  const ValueId copy = graph_.add("cast", {w}, {{"dtype", "bf16"}, {"kept", true}}, "copy");
  verify(graph_, "my_pass");
  const ValueId next = graph_.add("multiply_scalar", {w}, {{"value", 0.5}}, "next");
  graph_.add_update("w", next);
  graph_.add("renew", {copy, w}, {}, "wrong");
  EXPECT_THAT(error_of([&] { verify(graph_, "my_pass"); }),
              HasSubstr("'copy' is kept from step to step but not renewed"));
}

TEST_F(GraphTest, VerifierWantsARenewalInTheLayoutOfItsCopy) {
  const ValueId w = graph_.add_input(InputKind::parameter, "w", {DType::f32, {16, 16}, {}});
  const ValueId copy = graph_.add("cast", {w}, {{"dtype", "bf16"}, {"kept", true}}, "copy");
  graph_.set_layout(copy, parse_layout("ba", 2));
  const ValueId next = graph_.add("multiply_scalar", {w}, {{"value", 0.5}}, "next");
  graph_.add_update("w", next);
  graph_.add("renew", {copy, next}, {}, "anew");
  EXPECT_THAT(error_of([&] { verify(graph_, "my_pass"); }),
              HasSubstr("'anew' is bf16[16,16], what it renews is bf16[16,16]@ba"));
}

TEST_F(GraphTest, InputsLargerThanMemoryAreErrors) {
  const int64_t large = int64_t{1} << 32;
  EXPECT_THAT(error_of([&] {
                graph_.add_input(InputKind::batch, "x", {DType::f32, {large, large}, {}});
              }),
              HasSubstr("'x' is f32[4294967296,4294967296], more than any memory holds"));
}

TEST_F(GraphTest, ResultsLargerThanMemoryAreErrors) {
  const ValueId x = graph_.add_input(InputKind::batch, "x", {DType::f32, {int64_t{1} << 30, 1}, {}});
  const ValueId y = graph_.add_input(InputKind::batch, "y", {DType::f32, {1, int64_t{1} << 30}, {}});
  EXPECT_THAT(error_of([&] {
                graph_.add("add", {x, y}, {}, "sum");
              }),
              HasSubstr("[add] 'sum': gives f32[1073741824,1073741824], more than any memory holds"));
}

TEST_F(GraphTest, AScalarInputIsOneNumber) {
  for (const TensorType& type : {TensorType{DType::f32, {}, {}}, TensorType{DType::i64, {1}, {}}})
    EXPECT_EQ(error_of([&] { graph_.add_input(InputKind::scalar, to_string(type), type); }), "no error");
  for (const TensorType& type : {TensorType{DType::f32, {1024}, {}}, TensorType{DType::f32, {0}, {}},
                                 TensorType{DType::i32, {}, {}}, TensorType{DType::f32, {1}, parse_layout("A16a", 1)}})
    EXPECT_THAT(error_of([&] { graph_.add_input(InputKind::scalar, "rate", type); }),
                HasSubstr("scalar 'rate' is " + to_string(type) + "; a scalar input is one number of f32 or i64"));
}

TEST_F(GraphTest, VerifierWantsScalarsWithoutPadding) {
  const ValueId rate = graph_.add_input(InputKind::scalar, "rate", {DType::f32, {1}, {}});
  graph_.set_layout(rate, parse_layout("A16a", 1));
  EXPECT_THAT(error_of([&] { verify(graph_, "my_pass"); }), HasSubstr("'rate' is a scalar input, but f32[1]@A16a"));
}

}  // namespace
}  // namespace weft
