#include "weft/graph/symbolic_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/base/error.h"
#include "weft/graph/symbolic_text.h"
#include "weft/graph/text.h"
#include "weft/graph/verify.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

class SymbolicGraphTest : public testing::Test {
 protected:
  ValueId input(const std::string& name, const std::string& dims, DType dtype = DType::f32) {
    return graph_.add_input(InputKind::batch, name, {dtype, parse_expressions(dims)});
  }
  std::string shape_of(ValueId value) { return to_string(graph_.type(value)); }
  std::string inferred(const std::string& op, const std::vector<ValueId>& inputs,
                       const SymbolicAttributes& attributes = {}) {
    return shape_of(graph_.add_node(op, inputs, attributes)[0]);
  }

  OpRegistry registry_ = ops::make_registry();
  SymbolicGraph graph_{registry_, "g"};
};

SymbolicAttribute list(const std::string& text) { return parse_expressions(text); }
SymbolicAttribute plain(AttributeValue value) { return value; }

TEST_F(SymbolicGraphTest, InfersSumsAndProducts) {
  const ValueId x = input("x", "N,T,64"), bias = input("bias", "64"), weight = input("weight", "64,3*K");
  EXPECT_EQ(inferred("add", {x, bias}), "f32[N,T,64]");
  EXPECT_EQ(inferred("matmul", {x, weight}), "f32[N,T,3*K]");
  EXPECT_EQ(inferred("matmul", {x, x}, {{"transpose_b", plain(true)}}), "f32[N,T,T]");
  EXPECT_EQ(inferred("transpose", {x}, {{"permutation", list("2,0,1")}}), "f32[64,N,T]");
  EXPECT_EQ(inferred("reshape", {x}, {{"shape", list("N*T,64")}}), "f32[N*T,64]");
  EXPECT_EQ(inferred("reshape", {x}, {{"shape", list("N,-1,8")}}), "f32[N,8*T,8]");
  EXPECT_EQ(inferred("concat", {x, x}, {{"axis", plain(int64_t{1})}}), "f32[N,2*T,64]");
  EXPECT_EQ(inferred("pad", {x}, {{"low", list("0,1,0")}, {"high", list("0,T,0")}}), "f32[N,2*T+1,64]");
  EXPECT_EQ(inferred("slice", {x}, {{"starts", list("0,1,0")}, {"ends", list("N,T,64")}}), "f32[N,T-1,64]");
  EXPECT_EQ(
      inferred("strided_slice", {x}, {{"starts", list("0,0,63")}, {"ends", list("N,T,-1")}, {"steps", list("1,1,-2")}}),
      "f32[N,T,32]");
  EXPECT_EQ(inferred("broadcast_to", {bias}, {{"shape", list("N,64")}}), "f32[N,64]");
  EXPECT_EQ(inferred("reduce_mean", {x}, {{"axes", list("-1")}}), "f32[N,T]");
  EXPECT_EQ(inferred("reduce_sum", {x}), "f32[]");
  EXPECT_EQ(inferred("softmax", {x}), "f32[N,T,64]");
  EXPECT_EQ(inferred("cast", {x}, {{"dtype", plain(std::string("i8"))}}), "i8[N,T,64]");
  EXPECT_EQ(inferred("argmax", {x}), "i32[N,T]");
  EXPECT_EQ(inferred("constant", {}, {{"shape", list("N,1")}}), "f32[N,1]");
}

TEST_F(SymbolicGraphTest, InfersIndicesAndBooleans) {
  const ValueId tokens = input("tokens", "N,T", DType::i64), table = input("table", "1000,64");
  const ValueId words = input("words", "N,T", DType::i32);
  EXPECT_EQ(inferred("embedding", {table, words}), "f32[N,T,64]");
  EXPECT_EQ(inferred("take", {table, tokens}), "f32[N,T,64]");
  const ValueId pairs = input("pairs", "N,K,2", DType::i64), rows = input("rows", "N,K,1", DType::i64);
  const ValueId states = input("states", "N,T,64");
  EXPECT_EQ(inferred("gather_nd", {states, pairs}), "f32[N,K,64]");
  EXPECT_EQ(inferred("gather_nd", {states, rows}, {{"batch_dims", plain(int64_t{1})}}), "f32[N,K,64]");
  EXPECT_EQ(inferred("scatter_nd", {states, pairs, input("updates", "N,K,64")}), "f32[N,T,64]");
  EXPECT_EQ(inferred("scatter_elements", {tokens, tokens, tokens}), "i64[N,T]");
  EXPECT_EQ(inferred("top_k", {states}, {{"k", plain(int64_t{5})}, {"axis", plain(int64_t{1})}}), "f32[N,5,64]");
  EXPECT_EQ(inferred("equal", {tokens, tokens}), "bool[N,T]");
  EXPECT_EQ(inferred("one_hot", {words}, {{"classes", plain(int64_t{10})}}), "f32[N,T,10]");
}

TEST_F(SymbolicGraphTest, CarriesTheBatchThroughImages) {
  const ValueId image = input("image", "N,3,8,8"), weight = input("weight", "4,3,3,3");
  const ValueId conv =
      graph_.add_node("conv2d", {image, weight}, {{"padding", list("1,1")}, {"stride", list("2,2")}})[0];
  EXPECT_EQ(shape_of(conv), "f32[N,4,4,4]");
  EXPECT_EQ(inferred("max_pool2d", {conv}, {{"kernel", list("2,2")}, {"stride", list("2,2")}}), "f32[N,4,2,2]");
}

// The rules over symbols against the ordinary ones: whatever the symbols are bound to, both must agree.
TEST_F(SymbolicGraphTest, BindsToWhatTheOrdinaryRulesGive) {
  const ValueId x = input("x", "N,T,64"), weight = input("weight", "64,3*K");
  const ValueId product = graph_.add_node("matmul", {x, weight}, {}, "product")[0];
  const ValueId flat = graph_.add_node("reshape", {product}, {{"shape", list("N*T,-1")}}, "flat")[0];
  graph_.add_output("flat", flat);
  for (const int64_t n : {1, 2, 5})
    for (const int64_t t : {1, 7}) {
      const Graph bound = bind_symbols(graph_, {{"N", n}, {"T", t}, {"K", 2}});
      verify(bound, "binding");
      EXPECT_EQ(bound.shape(bound.find_value("flat")), (Shape{n * t, 6}));
    }
}

TEST_F(SymbolicGraphTest, BoundGraphsHaveNoSymbols) {
  graph_.add_output("y", graph_.add_node("relu", {input("x", "N,2*T+1")}, {}, "y")[0]);
  EXPECT_EQ(print_graph(bind_symbols(graph_, {{"N", 4}, {"T", 3}})), R"(graph "g" {
  batch %x "x" : f32[4,7]
  %y = relu(%x) : f32[4,7]
  output "y" %y
}
)");
}

TEST_F(SymbolicGraphTest, OpsWithoutARuleAreToldTheirTypes) {
  const ValueId image = input("image", "N,3,H,W"), weight = input("weight", "4,3,3,3");
  EXPECT_THAT(error_of([&] {
                graph_.add_node("conv2d", {image, weight});
              }),
              AllOf(HasSubstr("[conv2d]"), HasSubstr("symbols in the first dimension only"), HasSubstr("'image'")));
  const ValueId lengths = input("lengths", "N");
  EXPECT_THAT(error_of([&] { graph_.add_node("squared_norm", {lengths}); }),
              AllOf(HasSubstr("[squared_norm]"), HasSubstr("has no rule for symbols")));
  const ValueId norm = graph_.add_node("squared_norm", {lengths}, {}, "norm", {{DType::f32, {Expression(2)}}})[0];
  graph_.add_output("norm", norm);
  EXPECT_NE(error_of([&] { bind_symbols(graph_, {{"N", 2}, {"H", 8}, {"W", 8}}); }), "no error");
}

TEST_F(SymbolicGraphTest, UnlikeSymbolsDoNotFit) {
  const ValueId x = input("x", "N,T"), y = input("y", "T,N"), z = input("z", "N,S");
  EXPECT_THAT(error_of([&] {
                graph_.add_node("add", {x, z}, {}, "sum");
              }),
              AllOf(HasSubstr("[add] 'sum'"), HasSubstr("nothing says that T is S")));
  EXPECT_THAT(error_of([&] { graph_.add_node("matmul", {x, x}); }), HasSubstr("nothing says that T is N"));
  EXPECT_THAT(error_of([&] {
                graph_.add_node("concat", {x, y}, {{"axis", plain(int64_t{0})}});
              }),
              HasSubstr("must be equal in every axis but 0"));
  EXPECT_THAT(error_of([&] {
                graph_.add_node("reshape", {x}, {{"shape", list("N*S")}});
              }),
              AllOf(HasSubstr("has N*T elements"), HasSubstr("has N*S")));
  EXPECT_THAT(error_of([&] {
                graph_.add_node("reshape", {x}, {{"shape", list("S,-1")}});
              }),
              HasSubstr("the open dimension is N*T over S"));
  EXPECT_THAT(error_of([&] {
                graph_.add_node("broadcast_to", {x}, {{"shape", list("1,T")}});
              }),
              HasSubstr("does not broadcast"));
}

TEST_F(SymbolicGraphTest, UnboundSymbolIsNamed) {
  input("x", "N,T");
  EXPECT_THAT(error_of([&] {
                bind_symbols(graph_, {{"N", 4}});
              }),
              AllOf(HasSubstr("the symbol 'T' of graph 'g' has no value"), HasSubstr("T=32")));
}

TEST_F(SymbolicGraphTest, UnknownSymbolIsNamed) {
  input("x", "Batch,4");
  EXPECT_THAT(error_of([&] {
                bind_symbols(graph_, {{"Batch", 4}, {"Bacth", 4}});
              }),
              AllOf(HasSubstr("has no symbol 'Bacth'"), HasSubstr("did you mean 'Batch'")));
}

TEST_F(SymbolicGraphTest, DimensionsBelowOneAreNamed) {
  input("x", "N,T-4");
  EXPECT_THAT(error_of([&] {
                bind_symbols(graph_, {{"N", 4}, {"T", 4}});
              }),
              AllOf(HasSubstr("dimension T-4 of 'x' is 0 for T=4"), HasSubstr("at least 1")));
  EXPECT_THAT(error_of([&] { bind_symbols(graph_, {{"N", 4}, {"T", 1}}); }), HasSubstr("is -3 for T=1"));
  EXPECT_THAT(error_of([&] { bind_symbols(graph_, {{"N", 0}, {"T", 9}}); }), HasSubstr("the symbol 'N' is 0"));
}

TEST_F(SymbolicGraphTest, WrongTypesAreNamedWhenBound) {
  const ValueId x = input("x", "N,4");
  graph_.add_output("y", graph_.add_node("squared_norm", {x}, {}, "y", {{DType::f32, {Expression::symbol("N")}}})[0]);
  EXPECT_THAT(error_of([&] {
                bind_symbols(graph_, {{"N", 3}});
              }),
              AllOf(HasSubstr("[squared_norm] 'y'"), HasSubstr("f32[N] is f32[3]"), HasSubstr("the operands give")));
}

}  // namespace
}  // namespace weft
