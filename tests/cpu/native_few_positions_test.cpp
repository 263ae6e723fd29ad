// Convolutions of few positions by many weights give what the reference gives, NaN included.
#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/rng.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/graph.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

struct PositionCase {
  std::string label;
  Shape image, weight;
  std::vector<int64_t> stride{1, 1}, padding{1, 1}, dilation{1, 1};
  bool has_residual = true;
  std::string activation = "relu";
};

Tensor drawn_numbers(const TensorType& type, uint64_t seed) {
  Tensor tensor(type);
  RandomStream random(seed);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data_as<float>()[i] = 2 * random.uniform() - 1;
  return tensor;
}

class FewPositionsTest : public testing::TestWithParam<PositionCase> {
 protected:
  NodeSignature signature() {
    const PositionCase& c = GetParam();
    std::vector<ValueId> operands{input("x", c.image), input("w", c.weight), input("b", {c.weight[0]})};
    const Attributes attributes{
        {"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}, {"activation", c.activation}};
    if (c.has_residual) {
      const ValueId sums = graph_.add("conv2d", {operands[0], operands[1]},
                                      {{"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}});
      operands.push_back(input("r", graph_.shape(sums)));
    }
    const ValueId result = graph_.add("fused_conv2d", operands, attributes);
    return signature_of(graph_, graph_.value(result).producer);
  }
  ValueId input(const std::string& name, const Shape& shape) {
    return graph_.add_input(InputKind::batch, name, {DType::f32, shape, {}});
  }

  const OpRegistry registry_ = ops::make_registry();
  Graph graph_{registry_, "g"};
};

TEST_P(FewPositionsTest, AreConvolvedAsByTheReference) {
  const NodeSignature plain = signature();
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < plain.inputs.size(); ++i) inputs.push_back(drawn_numbers(plain.inputs[i], i + 1));
  for (const int threads : {1, 3}) {
    const CpuBackend backend(threads);
    const auto choice = backend.preferred_layouts(plain);
    ASSERT_TRUE(choice.has_value());
    NodeSignature node = plain;
    for (size_t i = 0; i < node.inputs.size(); ++i) node.inputs[i].layout = choice->inputs[i];
    node.outputs[0].layout = choice->outputs[0];
    if (backend.choose_kernel(node).kernel != "native:few_positions") GTEST_SKIP() << "this CPU has no AVX-512";
    for (const bool has_nan : {false, true}) {
      if (has_nan) inputs[0].data_as<float>()[inputs[0].elements() / 3] = NAN;
      const Tensor expected = CpuBackend(1, reference_kernels()).evaluate(plain, inputs)->front();
      std::vector<Tensor> laid_out;
      for (size_t i = 0; i < inputs.size(); ++i) laid_out.push_back(inputs[i].with_layout(node.inputs[i].layout));
      const Tensor actual = backend.evaluate(node, laid_out)->front().with_layout({});
      for (int64_t i = 0; i < expected.elements(); ++i) {
        const float want = expected.data_as<float>()[i], got = actual.data_as<float>()[i];
        ASSERT_EQ(std::isnan(want), std::isnan(got)) << i;
        if (!std::isnan(want)) {
          ASSERT_NEAR(want, got, 1e-3) << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, FewPositionsTest,
    testing::Values(PositionCase{"residual", {1, 512, 7, 7}, {64, 512, 3, 3}},
                    PositionCase{"images", {3, 256, 4, 5}, {128, 256, 3, 3}},
                    PositionCase{"stride", {1, 256, 9, 7}, {128, 256, 3, 3}, {2, 2}, {1, 1}, {1, 1}, false, "relu6"},
                    PositionCase{"uneven", {2, 512, 5, 4}, {192, 512, 1, 3}, {1, 1}, {0, 1}, {1, 1}, true, "none"},
                    PositionCase{"dilated", {1, 512, 6, 5}, {64, 512, 3, 3}, {1, 2}, {2, 0}, {2, 1}, false, "relu"}),
    [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace weft
