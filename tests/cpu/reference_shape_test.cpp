// Ops that move elements, on several dtypes; matmul's broadcasting and dropout's mask. By hand.
#include "tests/cpu/reference_values.h"
#include "weft/base/rng.h"

namespace weft::reference_tests {
namespace {

using ShapeList = std::vector<int64_t>;

TEST(ReferenceShape, TransposesIntegers) {
  const auto outputs = call("transpose", {integers({2, 3}, {1, 2, 3, 4, 5, 6})}, {{"permutation", ShapeList{1, 0}}});
  EXPECT_EQ(values_of<int32_t>(outputs[0]), (std::vector<int32_t>{1, 4, 2, 5, 3, 6}));
}

TEST(ReferenceShape, SlicesBytes) {
  Tensor bytes(DType::u8, {3, 3});
  for (int i = 0; i < 9; ++i) bytes.data_as<uint8_t>()[i] = static_cast<uint8_t>(i);
  const auto outputs = call("slice", {bytes}, {{"starts", ShapeList{1, 0}}, {"ends", ShapeList{3, 2}}});
  EXPECT_EQ(values_of<uint8_t>(outputs[0]), (std::vector<uint8_t>{3, 4, 6, 7}));
}

TEST(ReferenceShape, SlicesInSteps) {
  const Tensor rows = floats({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto sliced = [&](const ShapeList& starts, const ShapeList& ends, const ShapeList& steps) {
    return call("strided_slice", {rows}, {{"starts", starts}, {"ends", ends}, {"steps", steps}})[0];
  };
  expect_values(sliced({0, 1}, {2, 5}, {1, 2}), {1, 3, 6, 8});                      // [:, 1::2]
  expect_values(sliced({0, 4}, {2, -1}, {1, -1}), {4, 3, 2, 1, 0, 9, 8, 7, 6, 5});  // [:, ::-1]
  expect_values(sliced({1, 3}, {-1, 0}, {-1, -2}), {8, 6, 3, 1});                   // [::-1, 3:0:-2]
}

TEST(ReferenceShape, PutsTheGradientOfASliceInStepsBack) {
  const auto outputs = call("strided_slice_backward", {floats({1, 2}, {7, 8})},
                            {{"starts", ShapeList{1, 3}},
                             {"ends", ShapeList{2, 0}},
                             {"steps", ShapeList{1, -2}},
                             {"shape", ShapeList{2, 4}}});
  expect_values(outputs[0], {0, 0, 0, 0, 0, 8, 0, 7});
}

TEST(ReferenceShape, ConcatenatesAlongTheInnerAxis) {
  const auto outputs = call("concat", {floats({2, 1}, {1, 2}), floats({2, 2}, {3, 4, 5, 6})}, {{"axis", int64_t{1}}});
  expect_values(outputs[0], {1, 3, 4, 2, 5, 6});
}

TEST(ReferenceShape, PadsWithAValue) {
  const auto outputs =
      call("pad", {floats({1, 2}, {1, 2})}, {{"low", ShapeList{1, 0}}, {"high", ShapeList{0, 1}}, {"value", 9.0}});
  expect_values(outputs[0], {9, 9, 9, 1, 2, 9});
}

TEST(ReferenceShape, BroadcastsALongScalar) {
  const auto outputs = call("broadcast_to", {long_scalar(int64_t{1} << 60)}, {{"shape", ShapeList{2}}});
  EXPECT_EQ(values_of<int64_t>(outputs[0]), (std::vector<int64_t>{int64_t{1} << 60, int64_t{1} << 60}));
}

TEST(ReferenceShape, CastTruncatesAndSaturates) {
  const auto outputs = call("cast", {floats({4}, {-1.7f, 2.9f, 1e20f, -1e20f})}, {{"dtype", std::string("i32")}});
  EXPECT_EQ(values_of<int32_t>(outputs[0]), (std::vector<int32_t>{-1, 2, 2147483647, -2147483647 - 1}));
}

TEST(ReferenceShape, CastRoundsToBf16Evenly) {
  // 1 + 2^-8 lies between 1 and 1 + 2^-7: to even is 1; 1 + 3 * 2^-8 is as far from two: to even is 1 + 2^-6.
  const auto outputs = call("cast", {floats({2}, {1.00390625f, 1.01171875f})}, {{"dtype", std::string("bf16")}});
  EXPECT_EQ(values_of<uint16_t>(outputs[0]), (std::vector<uint16_t>{0x3f80, 0x3f82}));
}

TEST(ReferenceShape, ReorderBlocksAndZeroesThePadding) {
  const Tensor image = ramp({2, 3, 2, 2});
  NodeSignature node{&registry().get("reorder"), "reorder", {image.type()}, {image.type()}, {}};
  node.outputs[0].layout = parse_layout("aBcd8b", 4);
  const CpuBackend backend(1, reference_kernels());
  const auto outputs = evaluate_node(node, {image}, backend);
  const float* data = outputs[0].data_as<float>();
  EXPECT_EQ(data[1], image.data_as<float>()[4]);  // (0,1,0,0)
  EXPECT_EQ(data[3], 0.0f);                       // channel 3 is padding
  EXPECT_EQ(values_of<float>(outputs[0].with_layout({})), values_of<float>(image));
}

TEST(ReferenceMatmul, BroadcastsTheBatch) {
  const auto outputs = call("matmul", {floats({2, 1, 2}, {1, 2, 3, 4}), floats({2, 1}, {10, 1})});
  ASSERT_EQ(outputs[0].shape(), (Shape{2, 1, 1}));
  expect_values(outputs[0], {12, 34});
}

TEST(ReferenceMatmul, TransposesBothOperands) {
  // a = [[1, 3], [2, 4]] as stored transposed: [[1, 2], [3, 4]]
  const auto outputs = call("matmul", {floats({2, 2}, {1, 2, 3, 4}), floats({1, 2}, {5, 6})},
                            {{"transpose_a", true}, {"transpose_b", true}});
  expect_values(outputs[0], {23, 34});  // 1 * 5 + 3 * 6, 2 * 5 + 4 * 6
}

TEST(ReferenceAttention, MasksWhatLiesAhead) {
  const auto outputs = call("causal_mask", {floats({2, 3}, {1, 2, 3, 4, 5, 6})}, {{"value", -1.0}});
  expect_values(outputs[0], {1, 2, -1, 4, 5, 6});  // row 0 may see one column more than its own: S - T = 1
}

TEST(ReferenceDropout, KeepsTheShareAndScalesIt) {
  const Tensor x = floats({10000}, std::vector<float>(10000, 3));
  const auto outputs = call("dropout", {x, long_scalar(5), long_scalar(0)}, {{"probability", 0.25}});
  int64_t kept = 0;
  for (const float value : values_of<float>(outputs[0])) {
    if (value == 0) continue;
    EXPECT_FLOAT_EQ(value, 4);
    ++kept;
  }
  EXPECT_NEAR(static_cast<double>(kept), 7500, 4 * 43.3);  // four standard deviations of the binomial
}

TEST(ReferenceDropout, MaskFollowsSeedStepAndStream) {
  const Tensor x = floats({9}, std::vector<float>(9, 1));
  const auto mask = [&](int64_t seed, int64_t step, int64_t stream) {
    return values_of<float>(
        call("dropout", {x, long_scalar(seed), long_scalar(step)}, {{"probability", 0.5}, {"stream", stream}})[0]);
  };
  EXPECT_EQ(mask(1, 2, 3), mask(1, 2, 3));
  EXPECT_NE(mask(1, 2, 3), mask(2, 2, 3));
  EXPECT_NE(mask(1, 2, 3), mask(1, 3, 3));
  EXPECT_NE(mask(1, 2, 3), mask(1, 2, 4));
  const auto values = mask(1, 2, 3);
  for (uint64_t i = 0; i < 9; ++i)
    EXPECT_EQ(values[i] == 0, uniform_from_bits(philox(mix(1, 3), 2, i / 4)[i % 4]) < 0.5f) << i;
}

}  // namespace
}  // namespace weft::reference_tests
