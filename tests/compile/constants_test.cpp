// Networks whose weights are constants: folded into the layouts and types that kernels want, and the same bits as with
// weights in the state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "weft/base/rng.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/runtime/executor.h"

namespace weft {
namespace {

class Constants : public testing::TestWithParam<DType> {
 protected:
  Tensor drawn(Shape shape, uint64_t key) {
    Tensor tensor(DType::f32, std::move(shape));
    RandomStream stream(key);
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data_as<float>()[i] = stream.uniform() - 0.5f;
    return tensor;
  }
  /// Two convolutions and a fully connected layer, in whose place the weights stand as `weight` says.
  template <typename Weight>
  Graph network(Weight&& weight) {
    Graph graph(registry_, "net");
    ValueId x = graph.add_input(InputKind::batch, "image", {DType::f32, {4, 16, 10, 10}, {}});
    x = ops::relu(graph, ops::conv2d(graph, x, weight(graph, "first", Shape{32, 16, 3, 3}), {.padding = {1, 1}}));
    x = ops::relu(graph, ops::conv2d(graph, x, weight(graph, "second", Shape{32, 32, 3, 3}), {.padding = {1, 1}}));
    x = ops::reshape(graph, x, {4, 3200});
    x = ops::matmul(graph, x, weight(graph, "third", Shape{3200, 32}));
    graph.add_output("y", ops::cast(graph, x, DType::f32));
    return graph;
  }
  Tensor run(const Graph& graph, State state) {
    CompileOptions options;
    options.precision.dtype = GetParam();
    options.threads = 2;
    const CompiledStep step = compile(graph, backend_, options);
    compiled_ = print_graph(step.graph);
    constant_bytes_ = step.plan.constant_bytes;
    Executor executor(step.graph, step.plan, backend_);
    executor.bind_state(state);
    const Tensor image = drawn({4, 16, 10, 10}, 9);
    executor.bind_batch("image", image.data());
    executor.run();
    executor.run();
    return executor.output("y");
  }

  const OpRegistry registry_ = ops::make_registry();
  const CpuBackend backend_{2};
  std::string compiled_;
  int64_t constant_bytes_ = 0;
};

TEST_P(Constants, GiveTheBitsOfWeightsInTheState) {
  State state;
  const auto parameter = [&](Graph& graph, const std::string& name, const Shape& shape) {
    state.set(name, drawn(shape, hash_name(name)));
    return graph.add_input(InputKind::parameter, name, {DType::f32, shape, {}});
  };
  const auto constant = [&](Graph& graph, const std::string& name, const Shape& shape) {
    return ops::constant_tensor(graph, Constant(drawn(shape, hash_name(name))), name);
  };
  const Graph with_state = network(parameter), with_constants = network(constant);
  const Tensor expected = run(with_state, std::move(state));
  const Tensor given = run(with_constants, {});
  EXPECT_EQ(std::memcmp(given.data(), expected.data(), static_cast<size_t>(given.bytes())), 0);
  // Nothing of the weights is left to do in a step.
  for (const char* line : {"= cast(%first", "= cast(%second", "= cast(%third", "= reorder(%first", "= reorder(%second"})
    EXPECT_EQ(compiled_.find(line), std::string::npos) << compiled_;
  const int64_t elements = 32 * 16 * 9 + 32 * 32 * 9 + 3200 * 32;
  EXPECT_GE(constant_bytes_, byte_size(GetParam(), elements));
  EXPECT_LE(constant_bytes_, byte_size(DType::f32, elements) + 3 * 64);
}
INSTANTIATE_TEST_SUITE_P(Types, Constants, testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST(ConstantsOfManyGraphs, CompileWithoutCopies) {
  const OpRegistry registry = ops::make_registry();
  const CpuBackend backend(1);
  Graph graph(registry, "g");
  const Constant data(Tensor(DType::f32, {1 << 20}));
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, {1 << 20}, {}});
  graph.add_output("y", ops::add(graph, x, ops::constant_tensor(graph, data)));
  const CompiledStep step = compile(graph, backend, {});
  const auto node = std::find_if(step.graph.nodes().begin(), step.graph.nodes().end(), is_constant_tensor);
  ASSERT_NE(node, step.graph.nodes().end());
  EXPECT_EQ(constant_of(*node)->tensor().data(), data->tensor().data());
  EXPECT_EQ(step.plan.constant_bytes, 4 << 20);
}

}  // namespace
}  // namespace weft
