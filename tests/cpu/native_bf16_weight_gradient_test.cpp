#include <gmock/gmock.h>

#include <string>

#include "tests/cpu/native_support.h"
#include "weft/cpu/native/convolution/bf16_weight_gradient_loops.h"

namespace weft {
namespace {

using namespace native_test;
using WeightGradientPair = std::vector<int64_t>;

struct WeightGradientCase {
  Shape image;
  int64_t outputs;
  WeightGradientPair kernel, stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
};

Case gradient_of_weights(const WeightGradientCase& c, const std::string& weights_layout = "ABcd16b16a") {
  const auto size = [&](size_t axis) {
    const int64_t reach = (c.kernel[axis] - 1) * c.dilation[axis];
    return (c.image[static_cast<int>(axis) + 2] + 2 * c.padding[axis] - reach - 1) / c.stride[axis] + 1;
  };
  Case node;
  node.isas = {Isa::avx512};
  node.tolerance = 1e-5;
  node.op = "conv2d_backward_weights";
  node.inputs = {f32(c.image, "aBcd16b"), f32({c.image[0], c.outputs, size(0), size(1)}, "aBcd16b")};
  node = in_bf16(node);
  node.outputs = {f32({c.outputs, c.image[1], c.kernel[0], c.kernel[1]}, weights_layout)};
  node.attributes = {{"stride", c.stride}, {"padding", c.padding},   {"dilation", c.dilation}, {"groups", int64_t{1}},
                     {"kernel", c.kernel}, {"bias_gradient", false}, {"result_dtype", "f32"}};
  return node;
}

class NativeBf16WeightGradient : public testing::Test {
 protected:
  void SetUp() override {
    if (detect_isa() != Isa::avx512 || native::bf16_loops() == nullptr)
      GTEST_SKIP() << "this CPU has no AVX512_BF16: the kernel declines";
  }
};

TEST_F(NativeBf16WeightGradient, SumsWhatTheReferenceSums) {
  for (const WeightGradientCase& c :
       {WeightGradientCase{{3, 16, 8, 8}, 32, {3, 3}, {2, 2}, {1, 1}},
        WeightGradientCase{{2, 32, 7, 9}, 48, {3, 3}, {2, 1}, {1, 1}}, WeightGradientCase{{2, 72, 6, 5}, 64, {1, 1}},
        WeightGradientCase{{3, 64, 9, 7}, 80, {1, 1}, {2, 2}},
        WeightGradientCase{{1, 8, 11, 12}, 16, {5, 3}, {1, 2}, {2, 0}},
        WeightGradientCase{{2, 40, 10, 10}, 16, {3, 3}, {2, 2}, {2, 2}, {2, 2}},
        WeightGradientCase{{1, 16, 3, 3}, 16, {3, 3}, {3, 3}, {3, 3}},
        WeightGradientCase{{2, 64, 5, 5}, 64, {1, 1}, {1, 1}, {1, 1}}})
    expect_matches_rounded_reference(gradient_of_weights(c));
}

TEST_F(NativeBf16WeightGradient, SumsOverMoreImagesAndRowsThanArePackedAtOnce) {
  expect_matches_rounded_reference(gradient_of_weights({{5, 32, 80, 37}, 32, {3, 3}, {2, 1}, {1, 1}}));
  expect_matches_rounded_reference(gradient_of_weights({{1, 16, 200, 101}, 16, {3, 3}, {2, 2}, {1, 1}}));
  expect_matches_rounded_reference(gradient_of_weights({{3, 64, 40, 40}, 64, {1, 1}}));
}

TEST_F(NativeBf16WeightGradient, LeavesThePaddingOfTheWeightsZero) {
  expect_matches_rounded_reference(gradient_of_weights({{2, 24, 6, 6}, 32, {3, 3}, {2, 2}, {1, 1}}));
  expect_matches_rounded_reference(gradient_of_weights({{2, 24, 6, 6}, 32, {3, 3}, {2, 2}, {1, 1}}, "Acdb16a"));
}

TEST_F(NativeBf16WeightGradient, AnyNumberOfThreadsGivesTheSameBits) {
  const Case c = gradient_of_weights({{3, 32, 20, 20}, 48, {3, 3}, {2, 2}, {1, 1}});
  std::vector<Tensor> laid_out;
  for (const Tensor& input : plain_inputs(c)) laid_out.push_back(input.with_layout(c.inputs[0].layout));
  const BareNode node(c);
  std::string why_not;
  const auto one = run_kernel(*make_native(node.signature, Isa::avx512, 1, why_not), node.signature, laid_out);
  const auto three = run_kernel(*make_native(node.signature, Isa::avx512, 3, why_not), node.signature, laid_out);
  EXPECT_EQ(std::memcmp(one[0].data(), three[0].data(), static_cast<size_t>(one[0].bytes())), 0);
}

TEST_F(NativeBf16WeightGradient, SaysWhyItDeclines) {
  const auto why_not = [](const Case& c) {
    const BareNode node(c);
    std::string reason;
    EXPECT_EQ(make_native(node.signature, Isa::avx512, 2, reason), nullptr);
    return reason;
  };
  EXPECT_THAT(why_not(gradient_of_weights({{2, 12, 6, 6}, 16, {3, 3}, {2, 2}})),
              testing::HasSubstr("12 and 16 channels"));
  EXPECT_THAT(why_not(gradient_of_weights({{2, 16, 6, 6}, 20, {3, 3}, {2, 2}})),
              testing::HasSubstr("16 and 20 channels"));
  EXPECT_THAT(why_not(gradient_of_weights({{2, 16, 6, 6}, 16, {3, 3}, {2, 2}}, "")), testing::HasSubstr("layouts"));
  for (const WeightGradientCase& c :
       {WeightGradientCase{{2, 64, 6, 6}, 64, {3, 3}}, WeightGradientCase{{2, 64, 6, 6}, 32, {1, 1}}})
    EXPECT_THAT(why_not(gradient_of_weights(c)), testing::HasSubstr("oneDNN is as fast"));
}

}  // namespace
}  // namespace weft
