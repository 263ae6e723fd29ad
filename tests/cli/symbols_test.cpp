// `weft graph` on graph files with symbols, and with constants in a file beside them.
#include "tests/cli/program.h"
#include "weft/graph/constant_text.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft::cli_tests {
namespace {

class GraphFile : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_all(path("lm.weft"), kText);
  }

  static constexpr const char* kText = R"(graph "lm" {
  batch %tokens "tokens" : i32[N,T]
  parameter %table "table" : f32[10,4]
  %rows = embedding(%table, %tokens) : f32[N,T,4]
  %flat = reshape(%rows) {shape=[N*T,4]} : f32[N*T,4]
  %y = relu(%flat) : f32[N*T,4]
  output "y" %y
}
)";
};

TEST_F(GraphFile, IsPrintedWithItsSymbols) {
  const Outcome outcome = weft({"graph", path("lm.weft")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, kText);
}

TEST_F(GraphFile, IsBoundAndRewritten) {
  const Outcome bound = weft({"graph", path("lm.weft"), "--bind", "N=2", "--bind", "T=3"});
  EXPECT_EQ(bound.code, 0) << bound.err;
  EXPECT_NE(bound.out.find("%flat = reshape(%rows) {shape=[6,4]} : f32[6,4]"), std::string::npos) << bound.out;
  const Outcome planned = weft({"graph", path("lm.weft"), "--bind", "N=2", "--bind", "T=3", "--after", "all"});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_NE(planned.out.find("f32[6,4]"), std::string::npos) << planned.out;
}

TEST_F(GraphFile, UnboundSymbolsAreNamed) {
  expect_error(weft({"graph", path("lm.weft"), "--bind", "N=2"}), 2, "the symbol 'T' of graph 'lm' has no value");
  expect_error(weft({"graph", path("lm.weft"), "--after", "all"}), 2, "the symbol 'N' of graph 'lm' has no value");
}

TEST_F(GraphFile, MistakenBindingsAreNamed) {
  expect_error(weft({"graph", path("lm.weft"), "--bind", "N=2", "--bind", "N=3"}), 2, "symbol 'N' is 2 and 3 at once");
  expect_error(weft({"graph", path("lm.weft"), "--bind", "N:2"}), 2, "'N:2' binds no symbol; write NAME=NUMBER");
  expect_error(weft({"graph", path("lm.weft"), "--bind", "N=2", "--bind", "T=0"}), 2, "the symbol 'T' is 0");
  expect_error(weft({"graph", "mlp", "--bind", "N=2"}), 2, "--bind is for a graph file with symbols");
}

TEST_F(GraphFile, FindsItsConstantsBesideIt) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "g");
  graph.add_output("w", ops::constant_tensor(graph, Constant(Tensor(DType::f32, {5, 5})), "w"));
  write_all(path("g.weft"), print_graph(graph));
  expect_error(weft({"graph", path("g.weft")}), 2, "give the file of constants that belongs to it");
  write_constants(constants_path(path("g.weft")), find_constants(graph));
  const Outcome outcome = weft({"graph", path("g.weft"), "--after", "all"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("data=<f32[5,5] hash="), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace weft::cli_tests
