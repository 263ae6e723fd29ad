// f16 on processors that do not compute in it: conversions to the last bit, and kernels around those of f32.
#include "weft/cpu/native/elementwise/through_f32.h"

#include <bit>

#include "tests/cpu/native_support.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

using namespace native_test;

TensorType f16(Shape shape, const std::string& layout = "") {
  TensorType type = f32(std::move(shape), layout);
  type.dtype = DType::f16;
  return type;
}

/// Casts on the given instruction set.
Tensor cast(const Tensor& from, DType to, Isa isa) {
  Case c;
  c.op = "cast";
  c.inputs = {from.type()};
  c.outputs = {{to, from.shape(), {}}};
  const BareNode node(c);
  std::string why_not;
  const auto kernel = make_native(node.signature, isa, 2, why_not);
  EXPECT_NE(kernel, nullptr) << why_not;
  Tensor result(c.outputs[0]);
  const void* inputs[1] = {from.data()};
  void* outputs[1] = {result.data()};
  kernel->run({inputs, outputs, nullptr});
  return result;
}

TEST(ThroughF32, EveryHalfIsWidenedExactly) {
  Tensor halves(f16({65536}));
  for (int i = 0; i < 65536; ++i) halves.data_as<uint16_t>()[i] = static_cast<uint16_t>(i);
  for (const auto isa : available_isas()) {
    const Tensor wide = cast(halves, DType::f32, isa);
    for (int i = 0; i < 65536; ++i) {
      const float expected = f16_to_f32(static_cast<uint16_t>(i));
      ASSERT_EQ(std::memcmp(wide.data_as<float>() + i, &expected, sizeof expected), 0) << i;
    }
  }
}

// Each upper half of the bits of an f32, with what lies around a tie below it.
TEST(ThroughF32, NumbersAreRoundedToTheNearestHalf) {
  Tensor numbers(f32({65536 * 8}));
  int64_t count = 0;
  for (uint32_t upper = 0; upper < 65536; ++upper)
    for (const uint32_t lower : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x3000u, 0x5fffu, 0xffffu})
      numbers.data_as<float>()[count++] = std::bit_cast<float>(upper << 16 | lower);
  for (const auto isa : available_isas()) {
    const Tensor halves = cast(numbers, DType::f16, isa);
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(halves.data_as<uint16_t>()[i], f32_to_f16(numbers.data_as<float>()[i])) << numbers.data_as<float>()[i];
  }
}

class ThroughF32Node : public ::testing::Test {
 protected:
  ThroughF32Node() {
    if (backend_.computes_fast(DType::f16)) skip_ = true;
  }
  NodeSignature node(const std::string& op, std::vector<TensorType> inputs, std::vector<TensorType> outputs,
                     const Attributes& attributes = {}) const {
    const OpDef& definition = registry_.get(op);
    return {&definition, "node", std::move(inputs), std::move(outputs),
            complete_attributes(definition, "node", attributes)};
  }

  OpRegistry registry_ = ops::make_registry();
  CpuBackend backend_{2};
  bool skip_ = false;
};

TEST_F(ThroughF32Node, AConvolutionHasTheLayoutsAndTheKernelOfF32) {
  if (skip_) GTEST_SKIP() << "this CPU computes in f16";
  const Shape image = {8, 32, 14, 14}, weight = {64, 32, 3, 3}, result = {8, 64, 14, 14};
  const Attributes same = {{"padding", std::vector<int64_t>{1, 1}}};
  NodeSignature half = node("conv2d", {f16(image), f16(weight)}, {f16(result)}, same);
  NodeSignature wide = node("conv2d", {f32(image), f32(weight)}, {f32(result)}, same);
  const auto choice = backend_.preferred_layouts(half), in_f32 = backend_.preferred_layouts(wide);
  ASSERT_TRUE(choice && in_f32);
  EXPECT_EQ(choice->inputs, in_f32->inputs);
  EXPECT_EQ(choice->outputs, in_f32->outputs);
  for (NodeSignature* signature : {&half, &wide}) {
    signature->inputs[0].layout = choice->inputs[0];
    signature->inputs[1].layout = choice->inputs[1];
    signature->outputs[0].layout = choice->outputs[0];
  }
  const KernelChoice kernel = backend_.choose_kernel(half), wanted = backend_.choose_kernel(wide);
  EXPECT_EQ(kernel.kernel, wanted.kernel + " through f32");
  // Copies of image, weight and result in f32 are counted.
  EXPECT_GE(kernel.workspace_bytes,
            wanted.workspace_bytes + 4 * (image.elements() + weight.elements() + result.elements()));
}

TEST_F(ThroughF32Node, AResultMayTakeThePlaceOfItsOperandsCopy) {
  if (skip_) GTEST_SKIP() << "this CPU computes in f16";
  const Shape shape = {1000, 1000};
  EXPECT_EQ(backend_.choose_kernel(node("relu", {f16(shape)}, {f16(shape)})).workspace_bytes, 4 * shape.elements());
}

TEST_F(ThroughF32Node, WhatIsNotF16IsLeftToOthers) {
  const KernelChoice choice = backend_.choose_kernel(node("relu", {f32({10, 10})}, {f32({10, 10})}));
  EXPECT_EQ(choice.kernel.find("through"), std::string::npos) << choice.kernel;
}

}  // namespace
}  // namespace weft
