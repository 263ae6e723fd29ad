// Slices in steps as NumPy writes them, and their text form.
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft::ops {
namespace {

using Dims = std::vector<int64_t>;

class StridedSlice : public ::testing::Test {
 protected:
  StridedSlice() : graph_(registry_, "test") {
    x_ = graph_.add_input(InputKind::batch, "x", {DType::f32, {4, 10}, {}});
  }
  const Node& last() const { return graph_.nodes().back(); }

  const OpRegistry registry_ = make_registry();
  Graph graph_;
  ValueId x_;
};

TEST_F(StridedSlice, CountsFromTheEndAndCutsAsNumPy) {
  // NumPy: numpy.zeros((4, 10))[...].shape
  const auto shape = [&](const Dims& starts, const Dims& ends, const Dims& steps) {
    return graph_.shape(strided_slice(graph_, x_, starts, ends, steps));
  };
  EXPECT_EQ(shape({0, 0}, {4, 10}, {2, 3}), Shape({2, 4}));        // [::2, ::3]
  EXPECT_EQ(shape({0, -3}, {4, 100}, {1, 2}), Shape({4, 2}));      // [:, -3:100:2]
  EXPECT_EQ(shape({0, -1}, {4, -100}, {1, -1}), Shape({4, 10}));   // [:, -1:-100:-1]
  EXPECT_EQ(shape({100, 7}, {-100, 2}, {-3, -2}), Shape({2, 3}));  // [100:-100:-3, 7:2:-2]
  EXPECT_EQ(shape({0, 5}, {4, 5}, {1, 2}), Shape({4, 0}));         // [:, 5:5:2]
  EXPECT_EQ(shape({0, 8}, {4, 3}, {1, 2}), Shape({4, 0}));         // [:, 8:3:2]
  EXPECT_EQ(shape({0, 2}, {4, 6}, {1, -1}), Shape({4, 0}));        // [:, 2:6:-1]
}

TEST_F(StridedSlice, OfStepsOfOneIsASlice) {
  strided_slice(graph_, x_, {1, -4}, {3, 10}, {1, 1});
  EXPECT_EQ(last().op->name, "slice");
  EXPECT_EQ(last().attributes.integers("starts"), (Dims{1, 6}));
}

TEST_F(StridedSlice, GoesThroughText) {
  graph_.add_output("y", strided_slice(graph_, x_, {3, 0}, {-100, 10}, {-1, 4}, "y"));
  const std::string text = print_graph(graph_);
  EXPECT_NE(text.find("strided_slice(%x) {ends=[-1,10], starts=[3,0], steps=[-1,4]}"), std::string::npos) << text;
  EXPECT_EQ(print_graph(parse_graph(text, registry_)), text);
}

TEST_F(StridedSlice, SaysWhatIsWrong) {
  const auto error = [&](const Dims& starts, const Dims& ends, const Dims& steps) {
    return test::error_of([&] {
      graph_.add("strided_slice", {x_}, {{"starts", starts}, {"ends", ends}, {"steps", steps}}, "s");
    });
  };
  EXPECT_NE(error({0, 0}, {4, 10}, {1, 0}).find("axis 1: a step of 0 leads nowhere"), std::string::npos);
  EXPECT_NE(error({0, 0}, {4, 11}, {1, 2}).find("axis 1: [0,11) is no range"), std::string::npos);
  EXPECT_NE(error({4, 0}, {0, 10}, {-1, 1}).find("axis 0: from 4 back to 0 is no range"), std::string::npos);
  EXPECT_NE(error({0, 0}, {4, 10}, {2}).find("want one entry per axis"), std::string::npos);
}

}  // namespace
}  // namespace weft::ops
