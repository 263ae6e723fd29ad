#include <gmock/gmock.h>

#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;

const std::vector<std::string> kNormLayouts = {"", "acdb", "aBcd16b", "aBcd8b"};
// What matrix units want besides.
const std::string kWideBlocks = "aBcd32b";
// (N,C,H,W) with whole and partial channel blocks, few and many channels, odd sizes.
const std::vector<Shape> kNormShapes = {{2, 16, 5, 7}, {3, 37, 3, 3}, {2, 5, 9, 11}, {4, 96, 8, 8}, {4, 16, 36, 36}};

/// In f32 and with the images in bf16.
void expect_norm_matches(const Case& c) {
  expect_matches_reference(c);
  expect_matches_rounded_reference(in_bf16(c, [](const TensorType& type) { return type.shape.rank() > 1; }));
}

void make_variance(float& number) { number = 0.5f + std::abs(number); }

std::vector<Case> forward_cases(const std::string& activation, bool residual) {
  std::vector<Case> cases;
  const auto add = [&](const Shape& shape, const std::string& layout) {
    Case c;
    c.op = "batch_norm";
    const TensorType image = f32(shape, layout), channel = f32({shape[1]});
    c.inputs = {image, channel, channel};
    if (residual) c.inputs.push_back(image);
    c.outputs = {image, channel, channel};
    c.attributes = {{"epsilon", 1e-5}, {"activation", activation}};
    if (activation == "relu6") c.high = -(c.low = -8);
    cases.push_back(c);
  };
  for (const auto& shape : kNormShapes)
    for (const auto& layout : kNormLayouts) add(shape, layout);
  add({3, 37, 3, 3}, kWideBlocks);
  add({50, 33}, "");
  return cases;
}

TEST(NativeBatchNorm, ForwardMatchesReference) {
  for (const std::string activation : {"none", "relu", "relu6"})
    for (const bool residual : {false, true})
      for (const Case& c : forward_cases(activation, residual)) expect_norm_matches(c);
}

TEST(NativeBatchNorm, InferenceMatchesReference) {
  for (const std::string activation : {"none", "relu", "relu6"})
    for (const bool residual : {false, true})
      for (Case c : forward_cases(activation, residual)) {
        c.op = "batch_norm_inference";
        const TensorType channel = c.inputs[1];
        c.inputs.insert(c.inputs.begin() + 3, {channel, channel});
        c.outputs.resize(1);
        c.prepare = [](std::vector<Tensor>& inputs) {
          for (int64_t i = 0; i < inputs[4].elements(); ++i) make_variance(inputs[4].data_as<float>()[i]);
        };
        expect_norm_matches(c);
      }
}

TEST(NativeBatchNorm, BackwardMatchesReference) {
  struct Variant {
    std::string activation;
    bool output, residual_gradient;
  };
  for (const Variant& variant :
       {Variant{"none", false, false}, Variant{"none", false, true}, Variant{"relu", false, false},
        Variant{"relu", true, false}, Variant{"relu", true, true}, Variant{"relu", false, true},
        Variant{"relu6", false, false}, Variant{"relu6", true, true}})
    for (Case c : forward_cases(variant.activation, false)) {
      const TensorType image = c.inputs[0], channel = c.inputs[1];
      c.op = "batch_norm_backward";
      c.inputs = {image, image, channel, channel, channel, channel};
      if (variant.output) c.inputs.push_back(image);
      c.outputs = {image, channel, channel};
      if (variant.residual_gradient) c.outputs.push_back(image);
      c.attributes.set("residual_gradient", variant.residual_gradient);
      c.tolerance = 1e-5;
      c.prepare = [](std::vector<Tensor>& inputs) {
        for (int64_t i = 0; i < inputs[5].elements(); ++i) make_variance(inputs[5].data_as<float>()[i]);
      };
      expect_norm_matches(c);
    }
}

TEST(NativeBatchNorm, VarianceSurvivesALargeMean) {
  for (const auto& layout : kNormLayouts) {
    Case c;
    c.op = "batch_norm";
    const TensorType image = f32({16, 32, 28, 28}, layout), channel = f32({32});
    c.inputs = {image, channel, channel};
    c.outputs = {image, channel, channel};
    c.attributes = {{"epsilon", 1e-5}, {"activation", std::string("none")}};
    const BareNode node(c);
    Tensor x(TensorType{DType::f32, image.shape, {}});
    RandomStream stream(3);
    for (int64_t i = 0; i < x.elements(); ++i) x.data_as<float>()[i] = 1000.0f + stream.normal();
    Tensor ones(channel), zeros(channel);
    std::fill(ones.data_as<float>(), ones.data_as<float>() + 32, 1.0f);
    for (const auto isa : available_isas()) {
      std::string why_not;
      const auto kernel = make_native(node.signature, isa, 2, why_not);
      ASSERT_NE(kernel, nullptr) << why_not;
      const auto result = run_kernel(*kernel, node.signature, {x.with_layout(image.layout), ones, zeros});
      for (int64_t ch = 0; ch < 32; ++ch) {
        double mean = 0, variance = 0;
        const auto for_each = [&](auto&& visit) {
          for (int64_t n = 0; n < 16; ++n)
            for (int64_t s = 0; s < 784; ++s) visit(static_cast<double>(x.data_as<float>()[(n * 32 + ch) * 784 + s]));
        };
        for_each([&](double v) { mean += v / (16 * 784); });
        for_each([&](double v) { variance += (v - mean) * (v - mean) / (16 * 784); });
        EXPECT_NEAR(static_cast<double>(result[1].data_as<float>()[ch]), mean, 1e-4);
        EXPECT_NEAR(static_cast<double>(result[2].data_as<float>()[ch]), variance, 1e-6 * variance);
      }
    }
  }
}

TEST(NativeBatchNorm, DeclinesOtherLayoutsWithAReason) {
  Case c;
  c.op = "batch_norm";
  c.inputs = {f32({2, 16, 4, 4}, "aBcd16b"), f32({16}), f32({16})};
  c.outputs = {f32({2, 16, 4, 4}), f32({16}), f32({16})};
  c.attributes = {{"epsilon", 1e-5}, {"activation", std::string("none")}};
  const BareNode node(c);
  std::string why_not;
  EXPECT_EQ(make_native(node.signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_THAT(why_not, testing::HasSubstr("another layout"));
}

}  // namespace
}  // namespace weft
