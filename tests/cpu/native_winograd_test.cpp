// Winograd's filtering in bf16, in all three directions. Its tiles are rounded to bf16 once more than a direct
// convolution's operands, so that results are compared by the norm of their error.
#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;
using WinogradPair = std::vector<int64_t>;

struct Convolution {
  Shape image;
  int64_t outputs;
  WinogradPair padding;
};
const Convolution kConvolutions[] = {
    {{2, 32, 8, 8}, 32, {1, 1}},    {{3, 64, 15, 15}, 80, {1, 1}}, {{5, 24, 7, 7}, 40, {1, 1}},
    {{1, 48, 31, 16}, 24, {0, 0}},  {{2, 32, 9, 16}, 96, {0, 1}},  {{7, 25, 2, 2}, 27, {1, 1}},
    {{1, 128, 24, 17}, 64, {1, 0}}, {{12, 96, 4, 4}, 112, {1, 1}}, {{8, 24, 31, 31}, 24, {1, 1}}};

TensorType bf16(const Shape& shape, const std::string& layout = "aBcd16b") {
  return {DType::bf16, shape, parse_layout(layout, 4)};
}

Shape output_of(const Convolution& c) {
  return {c.image[0], c.outputs, c.image[2] - 2 + 2 * c.padding[0], c.image[3] - 2 + 2 * c.padding[1]};
}

Case node_of(const std::string& op, const Convolution& c) {
  Case node;
  node.isas = {Isa::avx512};
  node.op = op;
  node.attributes = {{"stride", WinogradPair{1, 1}},
                     {"padding", c.padding},
                     {"dilation", WinogradPair{1, 1}},
                     {"groups", int64_t{1}},
                     {"winograd", int64_t{1} << 30}};
  return node;
}

Case forward(const Convolution& c, const std::string& weights_layout, bool with_bias) {
  Case node = node_of("conv2d", c);
  node.inputs = {bf16(c.image), bf16({c.outputs, c.image[1], 3, 3}, weights_layout)};
  if (with_bias) node.inputs.push_back(f32({c.outputs}));
  node.outputs = {bf16(output_of(c))};
  return node;
}

Case gradient_of_data(const Convolution& c, const std::string& weights_layout) {
  Case node = node_of("conv2d_backward_data", c);
  node.inputs = {bf16(output_of(c)), bf16({c.outputs, c.image[1], 3, 3}, weights_layout)};
  node.outputs = {bf16(c.image)};
  node.attributes.set("input_size", WinogradPair{c.image[2], c.image[3]});
  return node;
}

Case gradient_of_weights(const Convolution& c, const std::string& weights_layout, bool with_bias) {
  Case node = node_of("conv2d_backward_weights", c);
  node.inputs = {bf16(c.image), bf16(output_of(c))};
  node.outputs = {f32({c.outputs, c.image[1], 3, 3}, weights_layout)};
  if (with_bias) node.outputs.push_back(f32({c.outputs}));
  node.attributes.set("kernel", WinogradPair{3, 3});
  node.attributes.set("bias_gradient", with_bias);
  node.attributes.set("result_dtype", std::string("f32"));
  return node;
}

Case widened(Case c) {
  for (auto* types : {&c.inputs, &c.outputs})
    for (auto& type : *types) type.dtype = DType::f32;
  return c;
}

/// The norm of the error over the norm of what the reference gives in f32 for the same rounded numbers.
double relative_error(const Tensor& actual, const Tensor& expected) {
  const Tensor plain = actual.with_layout({});
  double error = 0, norm = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double e = load_element(expected.dtype(), expected.data(), i);
    const double difference = load_element(plain.dtype(), plain.data(), i) - e;
    error += difference * difference;
    norm += e * e;
  }
  return std::sqrt(error / norm);
}

/// Rounding a number to bf16 costs 1.7e-3 in norm. An error in one tile of a thousand would show.
void expect_rounded_twice(const Case& c) {
  constexpr double kMostError = 8e-3, kMostErrorOfElement = 0.03;
  const Case wide = widened(c);
  std::vector<Tensor> inputs = plain_inputs(wide), rounded;
  for (size_t i = 0; i < inputs.size(); ++i) {
    rounded.push_back(converted(inputs[i], c.inputs[i].dtype));
    inputs[i] = converted(rounded[i], DType::f32);
  }
  expect_results(c, rounded, run_reference(wide, inputs),
                 [&](const Tensor& actual, const Tensor& expected, const std::string& what) {
                   EXPECT_LT(relative_error(actual, expected), kMostError) << what;
                   const Tensor plain = actual.with_layout({});
                   double largest = 0;
                   for (int64_t i = 0; i < expected.elements(); ++i)
                     largest = std::max(largest, std::abs(load_element(DType::f32, expected.data(), i)));
                   for (int64_t i = 0; i < expected.elements(); ++i)
                     ASSERT_NEAR(load_element(plain.dtype(), plain.data(), i),
                                 load_element(DType::f32, expected.data(), i), kMostErrorOfElement * largest)
                         << what << ", element " << i;
                 });
}

class NativeWinograd : public testing::Test {
 protected:
  void SetUp() override {
    if (!multiplies_bf16()) GTEST_SKIP() << "this CPU has no AVX512_BF16: the kernel declines";
  }
};

TEST_F(NativeWinograd, Convolves) {
  for (const Convolution& c : kConvolutions)
    for (const std::string weights_layout : {"", "ABcd8b16a2b"})
      for (const bool with_bias : {false, true}) expect_rounded_twice(forward(c, weights_layout, with_bias));
}

TEST_F(NativeWinograd, GivesTheGradientOfTheImages) {
  for (const Convolution& c : kConvolutions)
    for (const std::string weights_layout : {"", "ABcd8a16b2a"})
      expect_rounded_twice(gradient_of_data(c, weights_layout));
}

TEST_F(NativeWinograd, GivesTheGradientOfTheWeightsAndTheBias) {
  for (const Convolution& c : kConvolutions)
    for (const std::string weights_layout : {"", "ABcd16b16a"})
      for (const bool with_bias : {false, true})
        expect_rounded_twice(gradient_of_weights(c, weights_layout, with_bias));
}

/// Small whole numbers are exact in every transform: the tiles' positions, borders and channels are right to the bit.
TEST_F(NativeWinograd, IsExactOnSmallWholeNumbers) {
  for (const Convolution& c : kConvolutions)
    for (Case node : {forward(c, "ABcd8b16a2b", false), gradient_of_data(c, ""), gradient_of_weights(c, "", true)}) {
      const bool has_filters = node.op != "conv2d_backward_weights";
      std::vector<Tensor> wide, narrow;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const TensorType plain{DType::f32, node.inputs[i].shape, {}};
        wide.push_back(random_tensor(plain, 5 + i, 0, 1, 1));
        for (int64_t at = 0; at < wide[i].elements(); ++at) {
          // Few are not 0, so that sums stay below 256; filters are multiples of 4, which halve twice.
          float& x = wide[i].data_as<float>()[at];
          x = (x < 0.01f ? 1.0f : x > 0.99f ? -1.0f : 0.0f) * (has_filters && i == 1 ? 4.0f : 1.0f);
        }
        narrow.push_back(converted(wide[i], node.inputs[i].dtype));
      }
      Case plain = widened(node);
      expect_results(node, narrow, run_reference(plain, wide),
                     [&](const Tensor& actual, const Tensor& expected, const std::string& what) {
                       expect_close(converted(actual.with_layout({}), DType::f32), expected, 0, what);
                     });
    }
}

std::string why_not(const Case& c) {
  const BareNode node(c);
  std::string reason;
  EXPECT_EQ(make_native(node.signature, Isa::avx512, 2, reason), nullptr);
  return reason;
}

TEST_F(NativeWinograd, DeclinesWhatIsNotAskedForOrSlower) {
  const Convolution good{{2, 32, 8, 8}, 32, {1, 1}};
  Case node = forward(good, "", false);
  node.attributes.set("winograd", int64_t{0});
  EXPECT_THAT(why_not(node), testing::HasSubstr("not asked for"));
  node = forward(good, "", false);
  node.attributes.set("stride", WinogradPair{2, 2});
  EXPECT_THAT(why_not(node), testing::HasSubstr("without stride"));
  node = forward(good, "", false);
  node.inputs[0].layout = {};
  EXPECT_THAT(why_not(node), testing::HasSubstr("blocks of 16 channels"));
  EXPECT_THAT(why_not(forward({{8, 64, 3, 3}, 64, {1, 1}}, "", false)), testing::HasSubstr("cover 3 x 3 badly"));
  EXPECT_THAT(why_not(forward({{2, 16, 8, 8}, 64, {1, 1}}, "", false)), testing::HasSubstr("few channels"));
  EXPECT_THAT(why_not(forward({{1, 512, 8, 8}, 512, {1, 1}}, "", false)), testing::HasSubstr("only 16 tiles"));
}

TEST(NativeWinogradWithout, AVX512DeclinesEverywhere) {
  const BareNode node(forward({{2, 32, 8, 8}, 32, {1, 1}}, "", false));
  std::string reason;
  for (const Isa isa : {Isa::baseline, Isa::avx2}) EXPECT_EQ(make_native(node.signature, isa, 2, reason), nullptr);
}

}  // namespace
}  // namespace weft
