#include "weft/graph/generalize.h"

#include <gtest/gtest.h>

#include "weft/graph/symbolic_text.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

class Generalize : public testing::Test {
 protected:
  Graph flat(int64_t batch) const {
    Graph graph(registry_, "flat");
    const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, {batch, 3, 4}, {}});
    const ValueId rows = graph.add("reshape", {x}, {{"shape", std::vector<int64_t>{3 * batch, 4}}}, "rows");
    graph.add_output("y", graph.add("relu", {rows}, {}, "y"));
    return graph;
  }

  const OpRegistry registry_ = ops::make_registry();
};

TEST_F(Generalize, WhatDiffersBecomesASumOfTheSymbol) {
  const Graph two = flat(2), five = flat(5);
  const auto open = generalize({two, 2}, {five, 5}, "N");
  ASSERT_TRUE(open.has_value());
  EXPECT_EQ(print_symbolic_graph(*open),
            "graph \"flat\" {\n"
            "  batch %x \"x\" : f32[N,3,4]\n"
            "  %rows = reshape(%x) {shape=[3*N,4]} : f32[3*N,4]\n"
            "  %y = relu(%rows) : f32[3*N,4]\n"
            "  output \"y\" %y\n"
            "}\n");
}

TEST_F(Generalize, BoundToAnotherSizeItIsTheGraphOfThatSize) {
  const Graph two = flat(2), three = flat(3);
  const auto open = generalize({two, 2}, {three, 3}, "N");
  ASSERT_TRUE(open.has_value());
  EXPECT_EQ(print_graph(bind_symbols(*open, {{"N", 7}})), print_graph(flat(7)));
}

TEST_F(Generalize, OtherNodesHaveNoCommonForm) {
  const Graph two = flat(2);
  Graph other(registry_, "flat");
  const ValueId x = other.add_input(InputKind::batch, "x", {DType::f32, {3, 3, 4}, {}});
  const ValueId rows = other.add("reshape", {x}, {{"shape", std::vector<int64_t>{9, 4}}}, "rows");
  other.add_output("y", other.add("tanh", {rows}, {}, "y"));
  EXPECT_FALSE(generalize({two, 2}, {other, 3}, "N").has_value());
}

TEST_F(Generalize, ASizeThatGrowsByPartsHasNoCommonForm) {
  const auto graph = [&](int64_t batch, int64_t rows) {
    Graph result(registry_, "g");
    const ValueId x = result.add_input(InputKind::batch, "x", {DType::f32, {rows}, {}});
    result.add_output("y", result.add("relu", {x}, {}, "y"));
    static_cast<void>(batch);
    return result;
  };
  const Graph two = graph(2, 4), four = graph(4, 5);
  EXPECT_FALSE(generalize({two, 2}, {four, 4}, "N").has_value());
}

TEST_F(Generalize, AnotherConstantHasNoCommonForm) {
  const auto graph = [&](int64_t batch, float number) {
    Graph result(registry_, "g");
    const ValueId x = result.add_input(InputKind::batch, "x", {DType::f32, {batch, 1}, {}});
    const ValueId w =
        result.add("constant_tensor", {}, {{"data", Constant(Tensor::of({1}, std::vector<float>{number}))}}, "w");
    result.add_output("y", result.add("add", {x, w}, {}, "y"));
    return result;
  };
  const Graph two = graph(2, 1), three = graph(3, 1), other = graph(3, 2);
  EXPECT_TRUE(generalize({two, 2}, {three, 3}, "N").has_value());
  EXPECT_FALSE(generalize({two, 2}, {other, 3}, "N").has_value());
}

}  // namespace
}  // namespace weft
