// A network of fully connected layers learns the same whether updates multiply their gradients themselves or not.
#include "weft/passes/fuse/fuse_product_updates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "weft/autodiff/autodiff.h"
#include "weft/base/rng.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/ops/update/product_update.h"
#include "weft/runtime/executor.h"

namespace weft {
namespace {

constexpr int kSteps = 4;

Tensor random_tensor(const TensorType& type, uint64_t seed, float scale) {
  Tensor tensor(TensorType{type.dtype, type.shape, {}});
  RandomStream random(seed);
  for (int64_t index = 0; index < tensor.elements(); ++index)
    tensor.data_as<float>()[index] = scale * (random.uniform() - 0.5f);
  return tensor;
}

/// Two layers whose gradients do not stay in the caches, with sizes that fill no whole tiles; 16 rows.
Graph two_layers(const OpRegistry& registry) {
  Graph graph(registry, "two layers");
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape), {}}; };
  const ValueId x = graph.add_input(InputKind::batch, "x", f32({16, 603}));
  const ValueId wanted = graph.add_input(InputKind::batch, "wanted", f32({16, 517}));
  const ValueId rate = graph.add_input(InputKind::scalar, "learning_rate", f32({}));
  const std::vector<ValueId> weights = {graph.add_input(InputKind::parameter, "first", f32({1001, 603})),
                                        graph.add_input(InputKind::parameter, "second", f32({517, 1001}))};
  const ValueId hidden = ops::relu(graph, ops::matmul(graph, x, weights[0], false, true));
  const ValueId errors = ops::subtract(graph, ops::matmul(graph, hidden, weights[1], false, true), wanted);
  const ValueId loss = ops::reduce_mean(graph, ops::square(graph, errors), {}, false, "loss");
  graph.add_output("loss", loss);
  const std::vector<ValueId> gradients = add_gradients(graph, loss, weights);
  for (size_t index = 0; index < weights.size(); ++index) {
    const std::string name = graph.value(weights[index]).name;
    const ValueId velocity = graph.add_input(InputKind::state, name + ".velocity", graph.type(weights[index]));
    const auto next = ops::sgd_update(graph, weights[index], gradients[index], velocity, rate,
                                      {.momentum = 0.9, .weight_decay = 0.01, .nesterov = index == 1});
    graph.add_update(name, next[0]);
    graph.add_update(name + ".velocity", next[1]);
  }
  return graph;
}

struct Outcome {
  std::vector<float> losses;
  std::map<std::string, Tensor> states;
  int64_t fused = 0, arena_bytes = 0;
};

Outcome train(const Graph& graph, DType dtype, int threads, std::vector<std::string> without) {
  const CpuBackend backend(threads);
  const CompiledStep compiled = compile(graph, backend,
                                        {.passes = {.disabled = std::move(without), .stop_after = {}, .on_graph = {}},
                                         .precision = {dtype, {}},
                                         .threads = threads});
  Outcome outcome;
  outcome.arena_bytes = compiled.plan.arena_bytes;
  for (const Node& node : compiled.graph.nodes()) outcome.fused += node.op->name == ops::kProductSgdUpdate ? 1 : 0;
  Arena arena;
  Executor executor(compiled.graph, compiled.plan, backend, &arena);
  State state;
  std::map<std::string, Tensor> batch;
  for (const GraphInput& input : graph.inputs()) {
    const Tensor tensor = random_tensor(graph.type(input.value), hash_name(input.name), 0.2f);
    if (input.kind == InputKind::parameter || input.kind == InputKind::state) state.set(input.name, tensor.clone());
    if (input.kind == InputKind::batch) batch[input.name] = tensor.clone();
  }
  executor.bind_state(state);
  for (const auto& [name, tensor] : batch) executor.bind_batch(name, tensor.data());
  executor.set_scalar("learning_rate", 0.5);
  for (int step = 0; step < kSteps; ++step) {
    executor.run();
    outcome.losses.push_back(executor.output("loss").data_as<float>()[0]);
  }
  for (const StateUpdate& update : graph.updates()) outcome.states[update.state] = state.plain(update.state);
  return outcome;
}

class FusedProductUpdates : public testing::TestWithParam<DType> {};

TEST_P(FusedProductUpdates, LearnTheSame) {
  if (GetParam() != DType::f32 && !CpuBackend(1).computes_fast(GetParam()))
    GTEST_SKIP() << "this CPU lacks " << name_of(GetParam());
  // In bf16 the activations and their gradients are rounded, and a last bit of a weight may tip one of them over.
  const double tolerance = GetParam() == DType::f32 ? 1e-5 : 1e-3;
  const OpRegistry registry = ops::make_registry();
  const Graph graph = two_layers(registry);
  for (const int threads : {1, 3}) {
    SCOPED_TRACE(fmt::format("{} threads", threads));
    const Outcome apart = train(graph, GetParam(), threads, {"fuse_product_updates"});
    const Outcome fused = train(graph, GetParam(), threads, {});
    EXPECT_EQ(apart.fused, 0);
    EXPECT_EQ(fused.fused, 2);
    EXPECT_LT(fused.arena_bytes, apart.arena_bytes - (1 << 20)) << "no gradient is in memory";
    EXPECT_GT(std::abs(apart.losses.back() / apart.losses.front() - 1), 0.1f) << "too little happens to compare";
    for (int step = 0; step < kSteps; ++step)
      EXPECT_NEAR(fused.losses[static_cast<size_t>(step)], apart.losses[static_cast<size_t>(step)],
                  tolerance * static_cast<double>(apart.losses[0]));
    for (const auto& [name, want] : apart.states) {
      double largest = 0, difference = 0;
      const Tensor& got = fused.states.at(name);
      for (int64_t i = 0; i < want.elements(); ++i) {
        const double a = want.data_as<float>()[i], b = got.data_as<float>()[i];
        largest = std::max(largest, std::abs(a));
        difference = std::isfinite(b) ? std::max(difference, std::abs(a - b)) : INFINITY;
      }
      EXPECT_LE(difference, tolerance * largest) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FusedProductUpdates, testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace weft
