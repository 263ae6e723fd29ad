#include "weft/graph/symbolic_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

using testing::HasSubstr;

class SymbolicText : public testing::Test {
 protected:
  std::string error_of(const std::string& text) {
    try {
      parse_symbolic_graph(text, registry_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  OpRegistry registry_ = ops::make_registry();
};

constexpr const char* kModel = R"(graph "lm" {
  batch %tokens "tokens" : i32[N,T]
  parameter %table "table" : f32[1000,64]
  scalar %rate "rate" : f32[]
  %rows = embedding(%table, %tokens) : f32[N,T,64]
  %flat = reshape(%rows) {shape=[N*T,64]} : f32[N*T,64]
  %padded = pad(%flat) {high=[T,0], low=[1,0], value=0.5} : f32[N*T+T+1,64]
  %weight = constant_tensor() {data=<f32[2] 0.5,-1>} : f32[2]
  %mean = reduce_mean(%padded) {axes=[0,1]} : f32[]
  %new = multiply_scalar(%table) {value=0.5} : f32[1000,64]
  output "mean" %mean
  update "table" %new
}
)";

TEST_F(SymbolicText, PrintsWhatItParsed) {
  EXPECT_EQ(print_symbolic_graph(parse_symbolic_graph(kModel, registry_)), kModel);
}

TEST_F(SymbolicText, BindsToAnOrdinaryGraph) {
  const Graph graph = bind_symbols(parse_symbolic_graph(kModel, registry_), {{"N", 2}, {"T", 3}});
  EXPECT_EQ(graph.shape(graph.find_value("padded")), (Shape{10, 64}));
  EXPECT_EQ(print_graph(parse_graph(print_graph(graph), registry_)), print_graph(graph));
}

TEST_F(SymbolicText, ReadsOrdinaryGraphsToo) {
  const std::string text =
      "graph \"g\" {\n  batch %x \"x\" : f32[2,3]\n  %y = relu(%x) : f32[2,3]\n  output \"y\" %y\n}\n";
  EXPECT_EQ(print_graph(bind_symbols(parse_symbolic_graph(text, registry_), {})), text);
}

TEST_F(SymbolicText, KnowsWhereSymbolsStand) {
  EXPECT_TRUE(has_symbols(kModel));
  EXPECT_FALSE(has_symbols("graph \"[N]\" {\n  batch %x \"[N]\" : f32[2,3]@aB16b  # of [N]\n}\n"));
  EXPECT_TRUE(has_symbols("batch %x \"x\" : f32[2,n_1]"));
}

TEST_F(SymbolicText, WrongTypesNameTheNode) {
  EXPECT_THAT(error_of("graph \"g\" {\n batch %x \"x\" : f32[N]\n %y = relu(%x) : f32[M]\n}\n"),
              HasSubstr("[relu] 'y': is f32[M], its operands give f32[N]"));
}

TEST_F(SymbolicText, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("graph \"g\" {\n batch %x \"x\" : f99[N]\n}\n"),
              HasSubstr("line 2: expected a type like f32[N,3]"));
  EXPECT_THAT(error_of("graph \"g\" {\n batch %x \"x\" : f32[N/2]\n}\n"), HasSubstr("'N/2' is no dimension"));
  EXPECT_THAT(error_of("graph \"g\" {\n batch %x \"x\" : f32[-1]\n}\n"), HasSubstr("no negative dimension"));
  EXPECT_THAT(error_of("graph \"g\" {\n %y = relu(%x) : f32[N]\n}\n"), HasSubstr("there is no %x"));
  EXPECT_THAT(error_of("graph \"g\" {\n batch %x \"x\" : f32[N]\n"), HasSubstr("closing brace is missing"));
  EXPECT_THAT(error_of("graph \"g\" {\n batch %x \"x\" : f32[N]@Ab16a\n}\n"), HasSubstr("the end of the line"));
  EXPECT_THAT(error_of("graph \"g\" {\n}\nmore\n"), HasSubstr("nothing after the closing brace"));
}

}  // namespace
}  // namespace weft
