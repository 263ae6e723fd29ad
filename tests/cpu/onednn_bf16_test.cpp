// bf16 on oneDNN: generated code, no reference loops, and results as good as those of f32 on the same rounded operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpu/onednn_support.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/ops/all.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;

class OneDnnBf16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!backend_.computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  }

  NodeSignature node(const std::string& op, const std::vector<TensorType>& inputs, const Attributes& attributes) {
    Graph graph(registry_);
    std::vector<ValueId> values;
    for (size_t i = 0; i < inputs.size(); ++i)
      values.push_back(graph.add_input(InputKind::batch, "input" + std::to_string(i), inputs[i]));
    graph.add_node(op, values, attributes, "node");
    return signature_of(graph, {0});
  }

  /// The convolution in the layouts that it prefers.
  NodeSignature in_preferred_layouts(NodeSignature signature) {
    const auto choice = backend_.preferred_layouts(signature);
    EXPECT_TRUE(choice.has_value());
    for (size_t i = 0; choice && i < signature.inputs.size(); ++i) signature.inputs[i].layout = choice->inputs[i];
    for (size_t i = 0; choice && i < signature.outputs.size(); ++i) signature.outputs[i].layout = choice->outputs[i];
    return signature;
  }

  void expect_generated(const NodeSignature& signature) {
    const std::string kernel = backend_.choose_kernel(signature).kernel;
    EXPECT_TRUE(kernel.starts_with("onednn:jit") || kernel.starts_with("onednn:br") || kernel == "native:bf16_pairs")
        << kernel;
    EXPECT_THAT(kernel, Not(HasSubstr("+reorder")));
  }

  OpRegistry registry_ = ops::make_registry();
  CpuBackend backend_{2};
};

TensorType bf16_type(const Shape& shape) { return {DType::bf16, shape, {}}; }

Tensor rounded(const Shape& shape, uint64_t key) {
  const Tensor values = testing_support::random_tensor(shape, key);
  Tensor result(DType::bf16, shape);
  for (int64_t i = 0; i < values.elements(); ++i)
    result.data_as<uint16_t>()[i] = f32_to_bf16(values.data_as<float>()[i]);
  return result;
}

struct Layer {
  Shape image, weight, output;
  std::vector<int64_t> stride, padding;
  int64_t groups = 1;
};
// Of ResNet-50 at 128 x 128, and a depthwise one of MobileNet.
const Layer kLayers[] = {{{4, 3, 128, 128}, {64, 3, 7, 7}, {4, 64, 64, 64}, {2, 2}, {3, 3}},
                         {{4, 64, 32, 32}, {64, 64, 3, 3}, {4, 64, 32, 32}, {1, 1}, {1, 1}},
                         {{4, 256, 32, 32}, {512, 256, 1, 1}, {4, 512, 16, 16}, {2, 2}, {0, 0}},
                         {{4, 96, 16, 16}, {96, 1, 3, 3}, {4, 96, 16, 16}, {1, 1}, {1, 1}, 96}};

TEST_F(OneDnnBf16, ConvolutionsAndTheirGradientsAreGenerated) {
  for (const Layer& layer : kLayers) {
    SCOPED_TRACE(to_string(layer.weight));
    Attributes attributes{{"stride", layer.stride}, {"padding", layer.padding}, {"groups", layer.groups}};
    expect_generated(
        in_preferred_layouts(node("conv2d", {bf16_type(layer.image), bf16_type(layer.weight)}, attributes)));
    attributes.set("input_size", std::vector<int64_t>{layer.image[2], layer.image[3]});
    expect_generated(in_preferred_layouts(
        node("conv2d_backward_data", {bf16_type(layer.output), bf16_type(layer.weight)}, attributes)));
    attributes.erase("input_size");
    attributes.set("kernel", std::vector<int64_t>{layer.weight[2], layer.weight[3]});
    attributes.set("result_dtype", std::string("f32"));
    expect_generated(in_preferred_layouts(
        node("conv2d_backward_weights", {bf16_type(layer.image), bf16_type(layer.output)}, attributes)));
  }
}

TEST_F(OneDnnBf16, AGradientOfWeightsKeepsTheDigitsOfItsSum) {
  const Shape image{8, 32, 14, 14}, output{8, 32, 14, 14};
  const NodeSignature plain =
      node("conv2d_backward_weights", {bf16_type(image), bf16_type(output)},
           {{"padding", std::vector<int64_t>{1, 1}}, {"kernel", std::vector<int64_t>{3, 3}}, {"result_dtype", "f32"}});
  const NodeSignature blocked = in_preferred_layouts(plain);
  const std::vector<Tensor> operands{rounded(image, 1), rounded(output, 2)};
  const Tensor expected = evaluate_node(plain, operands, CpuBackend(1, reference_kernels()))[0];
  const Tensor actual = evaluate_node(blocked,
                                      {operands[0].with_layout(blocked.inputs[0].layout),
                                       operands[1].with_layout(blocked.inputs[1].layout)},
                                      backend_)[0]
                            .with_layout({});
  EXPECT_LT(testing_support::relative_error(actual, expected), 1e-5);  // rounding to bf16 would leave 2e-3
}

TEST_F(OneDnnBf16, MatrixProductsAreGeneratedWithEitherResult) {
  for (const char* result : {"same", "f32"})
    for (const bool transpose : {false, true}) {
      const Shape b = transpose ? Shape{96, 64} : Shape{64, 96};
      const NodeSignature product = node("matmul", {bf16_type({32, 64}), bf16_type(b)},
                                         {{"transpose_b", transpose}, {"result_dtype", std::string(result)}});
      expect_generated(product);
    }
}

TEST_F(OneDnnBf16, ACastChangesTheLayoutToo) {
  const Tensor weights = testing_support::random_tensor({32, 16, 3, 3}, 5);
  NodeSignature cast = node("cast", {weights.type()}, {{"dtype", std::string("bf16")}});
  for (const char* from : {"abcd", "ABcd16b16a"})
    for (const char* to : {"abcd", "ABcd8b16a2b", "ABcd8a16b2a"}) {
      cast.inputs[0].layout = parse_layout(from, 4);
      cast.outputs[0].layout = parse_layout(to, 4);
      const Tensor result =
          evaluate_node(cast, {weights.with_layout(cast.inputs[0].layout)}, backend_)[0].with_layout({});
      for (int64_t i = 0; i < weights.elements(); ++i)
        ASSERT_EQ(result.data_as<uint16_t>()[i], f32_to_bf16(weights.data_as<float>()[i])) << from << " to " << to;
    }
}

}  // namespace
}  // namespace weft
