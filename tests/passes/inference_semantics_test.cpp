// Random inference graphs compute the same by the reference kernels, and compiled for the engine: convolutions with all
// that may follow them, residuals that live on or die, NaN among the numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "weft/base/rng.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/runtime/executor.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

Tensor drawn(const TensorType& type, uint64_t seed, float low, float high) {
  Tensor tensor(type);
  RandomStream random(seed);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data_as<float>()[i] = low + (high - low) * random.uniform();
  return tensor;
}

class RandomNetwork {
 public:
  RandomNetwork(const OpRegistry& registry, uint64_t seed) : graph_(registry, "random"), random_(seed) {
    images_.push_back(graph_.add_input(InputKind::batch, "x", {DType::f32, {2, channels_, 6, 6}, {}}));
    for (int step = 0; step < 12; ++step) add_step();
    graph_.add_output("features", images_[images_.size() - 2]);
    graph_.add_output("last", images_.back());
  }
  const Graph& graph() const { return graph_; }

 private:
  ValueId constant(const Shape& shape, float size) {
    const Tensor tensor = drawn({DType::f32, shape, {}}, mix(17, ++constants_), -size, size);
    return graph_.add(kConstantTensor, {}, {{kConstantData, Constant(tensor)}});
  }

  ValueId pick() {
    const auto count = static_cast<uint32_t>(images_.size());
    return images_[count - 1 - std::min(random_.below(count), random_.below(3))];
  }

  ValueId convolution(ValueId x) {
    const int64_t size = random_.below(2) == 0 ? 1 : 3;
    const bool is_depthwise = random_.below(4) == 0;
    const ValueId weight = constant({channels_, is_depthwise ? 1 : channels_, size, size}, is_depthwise ? 0.8f : 0.3f);
    Attributes attributes{{"padding", std::vector<int64_t>{size / 2, size / 2}},
                          {"groups", is_depthwise ? channels_ : int64_t{1}}};
    std::vector<ValueId> operands{x, weight};
    if (random_.below(3) > 0) operands.push_back(constant({channels_}, 0.5f));
    return graph_.add("conv2d", operands, attributes);
  }

  void add_step() {
    const ValueId x = pick();
    ValueId value = convolution(x);
    if (random_.below(2) == 0)
      value = random_.below(2) == 0 ? ops::add(graph_, value, pick()) : ops::add(graph_, x, value);
    if (random_.below(6) == 0) value = ops::add(graph_, value, convolution(x));
    switch (random_.below(5)) {
      case 0:
        value = ops::relu(graph_, value);
        break;
      case 1:
        value = ops::clip(graph_, value, 0, 6);
        break;
      case 2:
        value = ops::clip(graph_, value, -1, 1);
        break;
      case 3:
        value = ops::silu(graph_, value);
        break;
      default:
        break;
    }
    images_.push_back(value);
  }

  Graph graph_;
  RandomStream random_;
  const int64_t channels_ = random_.below(3) == 0 ? 12 : 16;
  uint64_t constants_ = 0;
  std::vector<ValueId> images_;
};

class InferenceSemantics : public testing::TestWithParam<std::tuple<uint64_t, DType>> {
 protected:
  OpRegistry registry_ = ops::make_registry();
  CpuBackend reference_{1, reference_kernels()};
  CpuBackend backend_{2};
};

std::map<std::string, Tensor> run(const CompiledStep& step, const Tensor& x, const CpuBackend& backend) {
  Executor executor(step.graph, step.plan, backend);
  State none;
  executor.bind_state(none);
  executor.bind_batch("x", x.data());
  executor.run();
  std::map<std::string, Tensor> results;
  for (const GraphOutput& output : step.graph.outputs()) results.emplace(output.name, executor.output(output.name));
  return results;
}

TEST_P(InferenceSemantics, TheCompiledGraphComputesTheSame) {
  const auto [seed, dtype] = GetParam();
  if (dtype != DType::f32 && !backend_.computes_fast(dtype)) GTEST_SKIP() << "this CPU lacks " << name_of(dtype);
  const RandomNetwork network(registry_, seed);
  Tensor x = drawn(network.graph().type(network.graph().inputs()[0].value), seed, -1, 1);
  CompileOptions options;
  options.threads = 2;
  options.precision.dtype = dtype;
  const CompiledStep step = compile_inference(network.graph(), backend_, options);
  for (const bool has_nan : {false, true}) {
    if (has_nan) x.data_as<float>()[static_cast<int64_t>(seed) * 7 % x.elements()] = NAN;
    const auto expected = evaluate_graph(network.graph(), {{"x", x}}, reference_);
    const auto actual = run(step, x, backend_);
    for (const auto& [name, want] : expected) {
      const Tensor& got = actual.at(name);
      double largest = 1e-3, difference = 0;
      int64_t hidden = 0;
      for (int64_t i = 0; i < want.elements(); ++i) {
        const double a = want.data_as<float>()[i], b = got.data_as<float>()[i];
        if (std::isnan(a) != std::isnan(b)) ++hidden;
        if (std::isnan(a) || std::isnan(b)) continue;
        largest = std::max(largest, std::abs(a));
        difference = std::max(difference, std::abs(a - b));
      }
      EXPECT_EQ(hidden, 0) << name;
      EXPECT_LE(difference, (dtype == DType::f32 ? 2e-4 : 0.1) * largest) << name;
    }
  }
  if (HasFailure()) ADD_FAILURE() << print_graph(network.graph()) << print_graph(step.graph);
}

INSTANTIATE_TEST_SUITE_P(Seeds, InferenceSemantics,
                         testing::Combine(testing::Range<uint64_t>(1, 25), testing::Values(DType::f32, DType::bf16)));

}  // namespace
}  // namespace weft
