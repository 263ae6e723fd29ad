// Optimisers against PyTorch 1.13.1, through autodiff, passes, plan and executor. The expected numbers were printed by
//   w = Parameter([0.5, -1, 2]); b = Parameter([0.25]); optimizer = make([{w, weight_decay 0.1}, {b, weight_decay 0}])
//   for i in range(3): loss = 0.01 * (w * [1, 2, 3]).sum() ** 2 + 0.5 * (w ** 2).sum() + (b * (i + 1)).sum()
// with torch.optim.SGD(lr=0.1, momentum=0.9[, nesterov=True]) and AdamW(lr=0.1, betas=(0.9, 0.99), eps=1e-6).
#include "weft/train/optimizers/optimizer.h"

#include <gtest/gtest.h>

#include <array>

#include "weft/autodiff/autodiff.h"
#include "weft/compile/compile.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/runtime/executor.h"

namespace weft::train {
namespace {

void expect_after_three_steps(const OptimizerSpec& spec, const std::array<float, 4>& expected) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "optimizer");
  const ValueId w = graph.add_input(InputKind::parameter, "w", {DType::f32, {3}, {}});
  const ValueId b = graph.add_input(InputKind::parameter, "b", {DType::f32, {1}, {}});
  const ValueId weights = graph.add_input(InputKind::batch, "weights", {DType::f32, {3}, {}});
  const ValueId factor = graph.add_input(InputKind::batch, "factor", {DType::f32, {1}, {}});
  const ValueId dot = ops::reduce_sum(graph, ops::multiply(graph, w, weights));
  const ValueId first = ops::multiply_scalar(graph, ops::square(graph, dot), 0.01);
  const ValueId second = ops::multiply_scalar(graph, ops::reduce_sum(graph, ops::square(graph, w)), 0.5);
  const ValueId third = ops::reduce_sum(graph, ops::multiply(graph, b, factor));
  const ValueId loss = ops::add(graph, ops::add(graph, first, second), third, "loss");
  const std::vector<ValueId> gradients = add_gradients(graph, loss, {w, b});
  const std::vector<SlotSpec> slots =
      add_optimizer(graph, spec,
                    {{.name = "w", .value = w, .gradient = gradients[0], .decay = true},
                     {.name = "b", .value = b, .gradient = gradients[1], .decay = false}});

  const CpuBackend backend(1);
  const CompiledStep compiled = compile(graph, backend, {});
  Executor executor(compiled.graph, compiled.plan, backend);
  State state;
  state.set("w", Tensor::of({3}, std::array<float, 3>{0.5f, -1.0f, 2.0f}));
  state.set("b", Tensor::of({1}, std::array<float, 1>{0.25f}));
  for (const SlotSpec& slot : slots) state.set(slot.name, Tensor(slot.type));
  executor.bind_state(state);
  const std::array<float, 3> weights_data{1, 2, 3};
  executor.bind_batch("weights", weights_data.data());
  executor.set_scalar("learning_rate", 0.1);
  for (int step = 0; step < 3; ++step) {
    const float factor_data = static_cast<float>(step + 1);
    executor.bind_batch("factor", &factor_data);
    if (executor.has_scalar("step")) executor.set_scalar("step", step);
    executor.run();
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(state.plain("w").data_as<float>()[i], expected[i], 2e-6) << "w" << i;
  EXPECT_NEAR(state.plain("b").data_as<float>()[0], expected[3], 2e-6);
}

TEST(Optimizer, SgdIsPyTorchs) {
  OptimizerSpec spec{.name = "sgd"};
  spec.momentum = 0.9;
  spec.weight_decay = 0.1;
  expect_after_three_steps(spec, {0.179631174f, -0.520035625f, 0.758718133f, -0.701000035f});
}

TEST(Optimizer, NesterovIsPyTorchs) {
  OptimizerSpec spec{.name = "sgd"};
  spec.momentum = 0.9;
  spec.weight_decay = 0.1;
  spec.nesterov = true;
  expect_after_three_steps(spec, {0.0926257819f, -0.362283409f, 0.414761037f, -1.20590007f});
}

TEST(Optimizer, AdamWIsPyTorchs) {
  OptimizerSpec spec{.name = "adamw"};
  spec.weight_decay = 0.1;
  spec.beta1 = 0.9;
  spec.beta2 = 0.99;
  spec.epsilon = 1e-6;
  expect_after_three_steps(spec, {0.192223966f, -0.675305784f, 1.64430654f, -0.0419406816f});
}

TEST(Optimizer, SlotsAreNamedAfterTheirParameters) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "slots");
  const ValueId w = graph.add_input(InputKind::parameter, "conv.weight", {DType::f32, {3}, {}});
  const ValueId g = graph.add_input(InputKind::batch, "gradient", {DType::f32, {3}, {}});
  OptimizerSpec spec{.name = "adamw"};
  spec.weight_decay = 0.01;
  const auto slots = add_optimizer(graph, spec, {{.name = "conv.weight", .value = w, .gradient = g}});
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].name, "optimizer/first_moment/conv.weight");
  EXPECT_EQ(slots[1].name, "optimizer/second_moment/conv.weight");
  EXPECT_EQ(graph.updates().size(), 3u);
}

}  // namespace
}  // namespace weft::train
