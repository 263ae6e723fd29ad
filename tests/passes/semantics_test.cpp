// Random training steps compute the same before and after each pass, and when the planned result runs in one arena.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "weft/autodiff/autodiff.h"
#include "weft/base/rng.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/device/function_kernel.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/runtime/executor.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

using Tensors = std::map<std::string, Tensor>;

/// Grows a random network of images with channels that fill a vector register, with all that the passes look for:
/// convolutions, batch norms with their running statistics, residual sums, chains of elementwise ops, dead ends.
class RandomStep {
 public:
  /// Of a rank of several, gradients and statistics are reduced over all of them.
  enum class Ranks { one, several };

  RandomStep(const OpRegistry& registry, uint64_t seed, Ranks ranks = Ranks::one)
      : graph_(registry, "random"), random_(seed), ranks_(ranks) {
    images_.push_back(graph_.add_input(InputKind::batch, "x", {DType::f32, kShape, {}}));
    images_.push_back(graph_.add_input(InputKind::batch, "z", {DType::f32, kShape, {}}));
    learning_rate_ = graph_.add_input(InputKind::scalar, "learning_rate", {DType::f32, {}, {}});
    for (int step = 0; step < 14; ++step) add_step();
    const ValueId sum = ops::add(graph_, images_.back(), images_[images_.size() / 2]);
    const ValueId loss = ops::reduce_mean(graph_, ops::square(graph_, sum), {}, false, "loss");
    graph_.add_output("loss", loss);
    graph_.add_output("features", images_[images_.size() - 2]);
    train(loss);
  }

  const Graph& graph() const { return graph_; }

 private:
  static inline const Shape kShape{2, 16, 4, 4};

  ValueId pick() {
    // Mostly recent ones, so that the network becomes deep.
    const auto count = static_cast<uint32_t>(images_.size());
    return images_[count - 1 - std::min(random_.below(count), random_.below(4))];
  }

  ValueId parameter(const Shape& shape) {
    const std::string name = "p" + std::to_string(parameters_.size());
    parameters_.push_back(graph_.add_input(InputKind::parameter, name, {DType::f32, shape, {}}));
    return parameters_.back();
  }

  ValueId over_ranks(ValueId own) { return ranks_ == Ranks::one ? own : ops::all_reduce(graph_, own); }

  ValueId batch_norm(ValueId x) {
    const auto norm = ops::batch_norm(graph_, x, parameter({16}), parameter({16}));
    const std::string name = "mean" + std::to_string(parameters_.size());
    const ValueId running = graph_.add_input(InputKind::state, name, {DType::f32, {16}, {}});
    graph_.add_update(name, ops::running_average(graph_, running, over_ranks(norm.mean), 0.1, 1));
    return norm.output;
  }

  void add_step() {
    const ValueId x = pick();
    const auto add = [&](ValueId value) { images_.push_back(value); };
    switch (random_.below(18)) {
      case 0:
      case 1:
        return add(ops::conv2d(graph_, x, parameter({16, 16, 3, 3}), {.stride = {1, 1}, .padding = {1, 1}}));
      case 2:
        return add(ops::relu(graph_, batch_norm(x)));
      case 3:
        return add(ops::relu(graph_, ops::add(graph_, batch_norm(x), pick())));
      case 4:
        return add(ops::relu(graph_, ops::add(graph_, batch_norm(x), batch_norm(pick()))));
      case 5:
        return add(batch_norm(x));
      case 6:
        return add(ops::tanh(graph_, ops::add(graph_, x, parameter({1, 16, 1, 1}))));
      case 7:
        return add(ops::gelu(graph_, ops::multiply_scalar(graph_, ops::add(graph_, x, pick()), 0.5)));
      case 8:
        return add(ops::multiply(graph_, ops::sigmoid(graph_, x), pick()));
      case 9: {
        ops::exp(graph_, x);  // nobody reads it
        const ValueId one = ops::constant(graph_, {1}, 1);
        return add(ops::multiply(graph_, ops::add_scalar(graph_, x, 0), ops::broadcast_to(graph_, one, kShape)));
      }
      case 10: {
        const ValueId rows = ops::reshape(graph_, x, {32, 16});
        const ValueId turned = ops::transpose(graph_, ops::matmul(graph_, rows, parameter({16, 16})), {1, 0});
        return add(ops::reshape(graph_, turned, kShape.dims()));
      }
      case 11: {
        const ValueId is_positive = ops::greater_equal(graph_, x, ops::constant(graph_, {}, 0));
        return add(ops::where(graph_, is_positive, ops::silu(graph_, x), ops::clip(graph_, x, -0.5, 0.5)));
      }
      case 12:
        return add(ops::conv_transpose2d(graph_, ops::leaky_relu(graph_, x, 0.2), parameter({16, 16, 3, 3}),
                                         {.padding = {1, 1}}));
      case 13:
        return add(ops::adaptive_avg_pool2d(graph_, ops::resize(graph_, x, {7, 7}, "bilinear"), {4, 4}));
      case 14:
        return add(ops::group_norm(graph_, x, parameter({16}), parameter({16}), 4));
      case 15: {
        const ValueId sums = ops::conv2d(graph_, x, parameter({16, 16, 3, 3}), {.stride = {1, 1}, .padding = {1, 1}});
        return add(ops::add(graph_, sums, ops::reshape(graph_, parameter({16}), {1, 16, 1, 1})));
      }
      case 16: {
        const ops::Pool2dOptions window{{2, 2}, {2, 2}, {0, 0}};
        return add(ops::resize(graph_, ops::max_pool2d(graph_, ops::relu(graph_, x), window), {4, 4}, "nearest"));
      }
      default: {
        const ops::Pool2dOptions window{{3, 3}, {1, 1}, {1, 1}};
        return add(ops::subtract(graph_, ops::max_pool2d(graph_, x, window), x));
      }
    }
  }

  void train(ValueId loss) {
    const std::vector<ValueId> gradients = add_gradients(graph_, loss, parameters_);
    for (size_t index = 0; index < parameters_.size(); ++index) {
      const std::string name = graph_.value(parameters_[index]).name;
      const ValueId velocity = graph_.add_input(InputKind::state, name + ".velocity", graph_.type(parameters_[index]));
      const auto next = ops::sgd_update(graph_, parameters_[index], over_ranks(gradients[index]), velocity,
                                        learning_rate_, {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
      graph_.add_update(name + ".velocity", next[1]);
      add_readers_of_states(index, next[0]);
    }
  }

  /// What a step may ask of a parameter `old` beside its successor: both at once, the old one, the new one elsewhere.
  void add_readers_of_states(size_t index, ValueId updated) {
    const ValueId old = parameters_[index];
    const std::string name = graph_.value(old).name;
    switch (index % 5) {
      case 1:
        return graph_.add_update(name, ops::clip(graph_, updated, -0.2, 0.2));
      case 2:
        graph_.add_output("moved." + name, ops::add(graph_, ops::multiply_scalar(graph_, old, 0.1), updated));
        break;
      case 3: {
        const ValueId slow = graph_.add_input(InputKind::state, name + ".slow", graph_.type(old));
        graph_.add_output("old." + name, old);
        graph_.add_output("slow." + name, ops::multiply(graph_, slow, updated));
        graph_.add_update(name + ".slow", updated);
        break;
      }
      case 4: {
        const ValueId other = graph_.add_input(InputKind::state, name + ".other", graph_.type(old));
        graph_.add_update(name + ".other", old);
        return graph_.add_update(name, other);  // they change places
      }
      default:
        break;
    }
    graph_.add_update(name, updated);
  }

  Graph graph_;
  RandomStream random_;
  Ranks ranks_;
  std::vector<ValueId> images_, parameters_;
  ValueId learning_rate_;
};

Tensors random_inputs(const Graph& graph, uint64_t seed) {
  Tensors inputs;
  for (const GraphInput& input : graph.inputs()) {
    Tensor tensor(graph.type(input.value));
    RandomStream random(mix(seed, hash_name(input.name)));
    for (int64_t index = 0; index < tensor.elements(); ++index)
      tensor.data_as<float>()[index] = input.kind == InputKind::scalar ? 0.05f : 0.4f * random.uniform() - 0.15f;
    inputs.emplace(input.name, std::move(tensor));
  }
  return inputs;
}

/// To the largest element: sums in another order differ in the last digits.
constexpr double kF32Tolerance = 2e-4;
/// The same of a network in bf16: its 8 bits lose 2^-9 at each of a dozen operations, fused ones round less often, and
/// of the gradients before a batch norm most cancels.
constexpr double kBf16Tolerance = 0.15;

void expect_close(const Tensors& expected, const Tensors& actual, const std::string& what,
                  double tolerance = kF32Tolerance) {
  for (const auto& [name, want] : expected) {
    const Tensor& got = actual.at(name);
    ASSERT_EQ(got.type(), want.type()) << what << ": " << name;
    double largest = 1e-3, difference = 0;
    for (int64_t index = 0; index < want.elements(); ++index) {
      const double a = want.data_as<float>()[index], b = got.data_as<float>()[index];
      largest = std::max(largest, std::abs(a));
      difference = std::isfinite(b) ? std::max(difference, std::abs(a - b)) : INFINITY;
    }
    EXPECT_LE(difference, tolerance * largest) << what << ": " << name;
  }
}

class Semantics : public testing::TestWithParam<uint64_t> {
 protected:
  OpRegistry registry_ = ops::make_registry();
  CpuBackend reference_{1, reference_kernels()};
  CpuBackend backend_{1};
};

/// Outputs and states after one run.
Tensors run_planned(const Graph& step, const CompiledStep& compiled, const Tensors& inputs, const CpuBackend& backend) {
  Arena arena;
  if (compiled.plan.file_bytes > 0) arena.open_file(std::filesystem::temp_directory_path());
  if (compiled.plan.file_bytes > 0) arena.file()->reserve(compiled.plan.file_bytes);
  Executor executor(compiled.graph, compiled.plan, backend, &arena);
  State state;
  for (const GraphInput& input : step.inputs())
    if (input.kind == InputKind::parameter || input.kind == InputKind::state)
      state.set(input.name, inputs.at(input.name).clone());
  executor.bind_state(state);
  executor.bind_batch("x", inputs.at("x").data());
  executor.bind_batch("z", inputs.at("z").data());
  executor.set_scalar("learning_rate", inputs.at("learning_rate").data_as<float>()[0]);
  executor.run();
  Tensors results;
  for (const GraphOutput& output : step.outputs()) results[output.name] = executor.output(output.name);
  for (const StateUpdate& update : step.updates()) results[update.state] = state.plain(update.state);
  return results;
}

/// Collectives of a rank that is alone, which take their tensors away while they are under way.
void add_hiding_collectives(KernelTable& table) {
  using Saved = std::map<int64_t, std::vector<std::vector<std::byte>>>;  // by the collective's number
  const auto saved = std::make_shared<Saved>();
  const auto bytes_of = [](const TensorType& type) { return static_cast<size_t>(type.bytes()); };
  const auto start = [=](const NodeSignature& node, const KernelOptions&) -> KernelBody {
    return [=](const KernelArguments& arguments) {
      auto& tensors = (*saved)[node.attributes.integer("number")];
      tensors.clear();
      for (size_t index = 0; index < node.inputs.size(); ++index) {
        const auto* from = arguments.input<std::byte>(index);
        tensors.emplace_back(from, from + bytes_of(node.inputs[index]));
        std::memset(arguments.outputs[index], 0xff, tensors.back().size());  // NaN
      }
    };
  };
  const auto wait = [=](const NodeSignature& node, const KernelOptions&) -> KernelBody {
    return [=](const KernelArguments& arguments) {
      const auto& tensors = saved->at(node.attributes.integer("number"));
      for (size_t index = 0; index < tensors.size(); ++index) {
        const auto* under_way = arguments.input<std::byte>(index);
        for (size_t at = 0; at < tensors[index].size(); ++at)
          ASSERT_EQ(under_way[at], std::byte{0xff}) << node.name << ": somebody wrote into tensor " << index;
        std::memcpy(arguments.outputs[index], tensors[index].data(), tensors[index].size());
      }
    };
  };
  table.add_first("all_reduce_start", {"hiding", function_kernel("hiding", start, {.any_layout = true})});
  table.add_first("all_reduce_wait", {"hiding", function_kernel("hiding", wait, {.any_layout = true})});
}

TEST_P(Semantics, NobodyTouchesTensorsThatAreUnderWay) {
  const RandomStep alone(registry_, GetParam()), step(registry_, GetParam(), RandomStep::Ranks::several);
  const Tensors inputs = random_inputs(alone.graph(), GetParam());
  KernelTable kernels = standard_kernels();
  add_hiding_collectives(kernels);
  const CpuBackend backend(1, std::move(kernels));
  const CompiledStep expected = compile(alone.graph(), backend, {.threads = 1});
  for (const double latency : {1e-7, 1e-5, 1e-3}) {
    const CompiledStep compiled =
        compile(step.graph(), backend,
                {.threads = 1, .ranks = {.count = 2, .latency_seconds = latency, .bytes_per_second = 1e9}});
    const auto is_start = [](const Node& node) { return node.op->name == "all_reduce_start"; };
    EXPECT_TRUE(std::any_of(compiled.graph.nodes().begin(), compiled.graph.nodes().end(), is_start));
    expect_close(run_planned(alone.graph(), expected, inputs, backend),
                 run_planned(step.graph(), compiled, inputs, backend), fmt::format("latency {}", latency));
    if (HasFailure()) ADD_FAILURE() << print_graph(compiled.graph);
  }
}

TEST_P(Semantics, EachPassKeepsWhatTheStepComputes) {
  const RandomStep step(registry_, GetParam());
  const Tensors inputs = random_inputs(step.graph(), GetParam());
  const Tensors expected = evaluate_graph(step.graph(), inputs, reference_);
  bool has_layouts = false;
  const auto check = [&](const std::string& pass, const Graph& after) {
    has_layouts |= pass == "assign_layouts";
    expect_close(expected, evaluate_graph(after, inputs, has_layouts ? backend_ : reference_), pass);
    if (HasFailure()) ADD_FAILURE() << print_graph(step.graph()) << print_graph(after);
  };
  passes::run_pipeline(step.graph(), pass_context(backend_, {}), {.disabled = {}, .stop_after = {}, .on_graph = check});
}

// Lowering is what changes numbers; the passes behind it keep them.
TEST_P(Semantics, EachPassKeepsWhatAStepInBf16Computes) {
  if (!backend_.computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  const RandomStep step(registry_, GetParam());
  const Tensors inputs = random_inputs(step.graph(), GetParam());
  const Tensors in_f32 = evaluate_graph(step.graph(), inputs, reference_);
  Tensors lowered;
  bool has_layouts = false;
  const auto check = [&](const std::string& pass, const Graph& after) {
    if (pass == "lower_precision") {
      lowered = evaluate_graph(after, inputs, reference_);
      expect_close(in_f32, lowered, pass, kBf16Tolerance);
    }
    if (lowered.empty() || pass == "lower_precision") return;
    has_layouts |= pass == "assign_layouts";
    expect_close(lowered, evaluate_graph(after, inputs, has_layouts ? backend_ : reference_), pass, kBf16Tolerance);
    if (HasFailure()) ADD_FAILURE() << print_graph(after);
  };
  const CompileOptions options{.passes = {}, .precision = {DType::bf16, {}}};
  passes::run_pipeline(step.graph(), pass_context(backend_, options),
                       {.disabled = {}, .stop_after = {}, .on_graph = check});
}

class PlannedStep : public testing::TestWithParam<std::tuple<uint64_t, DType>> {
 protected:
  OpRegistry registry_ = ops::make_registry();
  CpuBackend reference_{1, reference_kernels()};
  CpuBackend backend_{1};
};

TEST_P(PlannedStep, ComputesTheSameInItsArena) {
  const auto [seed, dtype] = GetParam();
  if (dtype == DType::bf16 && !backend_.computes_fast(dtype)) GTEST_SKIP() << "this CPU lacks " << name_of(dtype);
  const RandomStep step(registry_, seed);
  const Tensors inputs = random_inputs(step.graph(), seed);
  const Tensors expected = evaluate_graph(step.graph(), inputs, reference_);
  const CompiledStep compiled = compile(step.graph(), backend_, {.passes = {}, .precision = {dtype, {}}, .threads = 1});
  expect_close(expected, run_planned(step.graph(), compiled, inputs, backend_), "the planned step",
               dtype == DType::f32 ? kF32Tolerance : kBf16Tolerance);
  if (HasFailure()) ADD_FAILURE() << print_graph(compiled.graph);
}

TEST_P(PlannedStep, WhatIsComputedTwiceIsTheSameToTheLastBit) {
  const auto [seed, dtype] = GetParam();
  if (dtype == DType::bf16 && !backend_.computes_fast(dtype)) GTEST_SKIP() << "this CPU lacks " << name_of(dtype);
  const RandomStep step(registry_, seed);
  const Tensors inputs = random_inputs(step.graph(), seed);
  const CompiledStep free = compile(step.graph(), backend_, {.passes = {}, .precision = {dtype, {}}, .threads = 1});
  const Tensors expected = run_planned(step.graph(), free, inputs, backend_);
  for (const int64_t percent : {85, 60, 1}) {
    const int64_t limit = free.plan.arena_bytes * percent / 100;
    const CompiledStep compiled = compile(
        step.graph(), backend_, {.passes = {}, .precision = {dtype, {}}, .threads = 1, .arena_limit_bytes = limit});
    EXPECT_LE(compiled.plan.arena_bytes, free.plan.arena_bytes);
    const Tensors actual = run_planned(step.graph(), compiled, inputs, backend_);
    for (const auto& [name, want] : expected)
      EXPECT_EQ(std::memcmp(want.data(), actual.at(name).data(), static_cast<size_t>(want.bytes())), 0)
          << name << ", " << percent << " %";
    if (HasFailure()) ADD_FAILURE() << print_graph(compiled.graph);
  }
}

class OffloadedStep : public testing::TestWithParam<uint64_t> {
 protected:
  OpRegistry registry_ = ops::make_registry();
  CpuBackend backend_{1};
};

TEST_P(OffloadedStep, WhatLiesInAFileIsTheSameToTheLastBit) {
  const RandomStep step(registry_, GetParam());
  const Tensors inputs = random_inputs(step.graph(), GetParam());
  const CompiledStep free = compile(step.graph(), backend_, {.threads = 1});
  const Tensors expected = run_planned(step.graph(), free, inputs, backend_);
  const CompiledStep compiled = compile(step.graph(), backend_,
                                        {.passes = {.disabled = {"recompute"}, .stop_after = {}, .on_graph = {}},
                                         .threads = 1,
                                         .arena_limit_bytes = free.plan.arena_bytes * 8 / 10,
                                         .offload_bytes_per_second = 1e14});
  const Tensors actual = run_planned(step.graph(), compiled, inputs, backend_);
  for (const auto& [name, want] : expected)
    EXPECT_EQ(std::memcmp(want.data(), actual.at(name).data(), static_cast<size_t>(want.bytes())), 0) << name;
  if (HasFailure()) ADD_FAILURE() << print_graph(compiled.graph);
}

INSTANTIATE_TEST_SUITE_P(Seeds, OffloadedStep, testing::Range<uint64_t>(1, 17));
INSTANTIATE_TEST_SUITE_P(Seeds, Semantics, testing::Range<uint64_t>(1, 25));
INSTANTIATE_TEST_SUITE_P(Seeds, PlannedStep,
                         testing::Combine(testing::Range<uint64_t>(1, 25),
                                          testing::Values(DType::f32, DType::bf16, DType::f16)));

}  // namespace
}  // namespace weft
