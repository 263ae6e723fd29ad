// Evaluation without a plan.
#include "weft/runtime/interpret.h"

#include <gmock/gmock.h>

#include "tests/cpu/reference_values.h"
#include "weft/base/error.h"
#include "weft/ops/ops.h"

namespace weft::reference_tests {
namespace {

using ::testing::HasSubstr;

/// y = relu(x) * 2; the state becomes x + state.
Graph small_graph() {
  Graph graph(registry(), "small");
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, {1, 2, 1, 2}, {}});
  const ValueId state = graph.add_input(InputKind::state, "sum", {DType::f32, {1, 2, 1, 2}, {}});
  graph.add_output("y", ops::multiply_scalar(graph, ops::relu(graph, x), 2));
  graph.add_update("sum", ops::add(graph, x, state));
  return graph;
}
const Shape kImage{1, 2, 1, 2};

TEST(Evaluate, GivesOutputsAndUpdatesByName) {
  const CpuBackend backend(1, reference_kernels());
  const auto results = evaluate_graph(
      small_graph(), {{"x", floats(kImage, {1, -2, 3, -4})}, {"sum", floats(kImage, {10, 10, 10, 10})}}, backend);
  ASSERT_EQ(results.size(), 2u);
  expect_values(results.at("y"), {2, 0, 6, 0});
  expect_values(results.at("sum"), {11, 8, 13, 6});
}

TEST(Evaluate, LeavesItsInputsAlone) {
  const CpuBackend backend(1, reference_kernels());
  const Tensor sum = floats(kImage, {10, 10, 10, 10});
  evaluate_graph(small_graph(), {{"x", floats(kImage, {1, -2, 3, -4})}, {"sum", sum}}, backend);
  expect_values(sum, {10, 10, 10, 10});
}

TEST(Evaluate, AcceptsInputsInAnyLayout) {
  const CpuBackend backend(1, reference_kernels());
  const Tensor x = floats(kImage, {1, -2, 3, -4});
  const auto results = evaluate_graph(
      small_graph(), {{"x", x.with_layout(channels_last(4))}, {"sum", x.with_layout(parse_layout("aBcd8b", 4))}},
      backend);
  expect_values(results.at("sum"), {2, -4, 6, -8});
}

TEST(Evaluate, NamesAMissingInput) {
  const CpuBackend backend(1, reference_kernels());
  try {
    evaluate_graph(small_graph(), {{"x", floats(kImage, {1, 2, 3, 4})}}, backend);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("'sum' (f32[1,2,1,2])"));
  }
}

TEST(Evaluate, NamesAnInputOfTheWrongShape) {
  const CpuBackend backend(1, reference_kernels());
  try {
    evaluate_graph(small_graph(), {{"x", floats({2}, {1, 2})}, {"sum", floats(kImage, {1, 2, 3, 4})}}, backend);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::shape);
    EXPECT_THAT(error.what(), HasSubstr("wants 'x' as f32[1,2,1,2], got f32[2]"));
  }
}

TEST(Evaluate, ANodeWantsTheTypesOfItsSignature) {
  const CpuBackend backend(1, reference_kernels());
  const NodeSignature node{&registry().get("relu"), "r", {{DType::f32, {2}, {}}}, {{DType::f32, {2}, {}}}, {}};
  EXPECT_THROW(evaluate_node(node, {floats({3}, {1, 2, 3})}, backend), Error);
  EXPECT_THROW(evaluate_node(node, {}, backend), Error);
}

TEST(Evaluate, TheReferenceDeclinesOtherLayoutsWithAReason) {
  const CpuBackend backend(1, reference_kernels());
  const TensorType blocked{DType::f32, {1, 8, 2, 2}, parse_layout("aBcd8b", 4)};
  const NodeSignature node{&registry().get("relu"), "r", {blocked}, {blocked}, {}};
  std::string why_not;
  EXPECT_EQ(backend.table().candidates("relu").back().make(node, {1}, why_not), nullptr);
  EXPECT_THAT(why_not, HasSubstr("layout aBcd8b of operand 0"));
}

}  // namespace
}  // namespace weft::reference_tests
