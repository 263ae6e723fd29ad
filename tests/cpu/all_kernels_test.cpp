#include "weft/cpu/all_kernels.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/cpu/onednn_support.h"
#include "weft/ops/all.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

using testing::Contains;
using testing::StartsWith;

class AllKernels : public testing::Test {
 protected:
  NodeSignature node(const std::string& op, const std::vector<Shape>& inputs, const Shape& output,
                     const Attributes& given = {}) const {
    NodeSignature node{&registry_.get(op), "node", {}, {{DType::f32, output, {}}}, given};
    for (const Shape& shape : inputs) node.inputs.push_back({DType::f32, shape, {}});
    for (const AttributeSpec& spec : node.op->attributes)
      if (!node.attributes.has(spec.name)) node.attributes.set(spec.name, spec.value);
    return node;
  }
  std::vector<std::string> names(const NodeSignature& signature) const {
    std::vector<std::string> all;
    for (const auto& kernel : make_all_kernels(backend_, signature)) all.push_back(kernel->name());
    return all;
  }
  /// Every kernel computes what plain loops compute, under its own name too.
  void expect_alike(const NodeSignature& plain) const {
    NodeSignature blocked = plain;
    if (const auto choice = backend_.preferred_layouts(plain)) {
      for (size_t i = 0; i < plain.inputs.size(); ++i) blocked.inputs[i].layout = choice->inputs[i];
      blocked.outputs[0].layout = choice->outputs[0];
    }
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < plain.inputs.size(); ++i)
      inputs.push_back(testing_support::random_tensor(plain.inputs[i].shape, i + 1));
    const Tensor expected = evaluate_node(plain, inputs, CpuBackend(1, reference_kernels()))[0];
    for (const NodeSignature& signature : {plain, blocked})
      for (const std::string& name : names(signature)) {
        SCOPED_TRACE(name + " on " + to_string(signature.inputs[0]));
        const auto kernel = backend_.make_kernel(signature, name);
        ASSERT_NE(kernel, nullptr);
        EXPECT_EQ(kernel->name(), name);
        EXPECT_LT(
            testing_support::relative_error(testing_support::run_onednn_kernel(*kernel, signature, inputs), expected),
            1e-5);
      }
  }

  OpRegistry registry_ = ops::make_registry();
  CpuBackend backend_{2};
};

TEST_F(AllKernels, EachNameOnceAndTheFirstCandidateFirst) {
  const NodeSignature product = node("matmul", {{64, 96}, {96, 80}}, {64, 80});
  const std::vector<std::string> all = names(product);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front(), backend_.choose_kernel(product).kernel);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_THAT(all, testing::Not(Contains(StartsWith("reference"))));
  EXPECT_THAT(names(node("relu", {{4, 4}}, {4, 4})), Contains(StartsWith("onednn:")));
}

TEST_F(AllKernels, PlainLoopsOnlyWhereNothingElseServes) {
  EXPECT_THAT(names(node("matmul", {{0, 4}, {4, 4}}, {0, 4})), testing::ElementsAre(StartsWith("reference")));
}

TEST_F(AllKernels, AnUnknownNameIsNoKernel) {
  EXPECT_EQ(backend_.make_kernel(node("matmul", {{64, 96}, {96, 80}}, {64, 80}), "onednn:amx"), nullptr);
  EXPECT_EQ(backend_.make_kernel(node("relu", {{4, 4}}, {4, 4}), "onednn:amx"), nullptr);
}

TEST_F(AllKernels, AllComputeTheSame) {
  const std::vector<int64_t> one{1, 1}, size{12, 12}, three{3, 3};
  expect_alike(node("matmul", {{33, 96}, {96, 80}}, {33, 80}));
  expect_alike(node("conv2d", {{2, 32, 12, 12}, {48, 32, 3, 3}}, {2, 48, 12, 12}, {{"padding", one}}));
  expect_alike(node("conv2d", {{2, 3, 12, 12}, {32, 3, 3, 3}}, {2, 32, 12, 12}, {{"padding", one}}));
  expect_alike(node("conv2d_backward_data", {{2, 48, 12, 12}, {48, 32, 3, 3}}, {2, 32, 12, 12},
                    {{"padding", one}, {"input_size", size}}));
  expect_alike(node("conv2d_backward_weights", {{2, 32, 12, 12}, {2, 48, 12, 12}}, {48, 32, 3, 3},
                    {{"padding", one}, {"kernel", three}}));
}

}  // namespace
}  // namespace weft
