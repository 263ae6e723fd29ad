// What activations make of f64: weft/onnx/operators/activations.cpp. ONNX's own tests are of f32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/onnx/convert_support.h"

namespace weft::onnx {
namespace {

struct Activation {
  const char* op;
  std::function<double(double)> exact;
  AttributeList attributes = {};
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double elu_of(double x) { return x > 0 ? x : std::expm1(x); }

TEST(OnnxActivations, OfDoublesKeepTheirDigits) {
  const std::vector<Activation> all = {
      {"LeakyRelu", [](double x) { return x > 0 ? x : 0.01 * x; }},
      {"Elu", elu_of},
      {"Celu", elu_of},
      {"Relu", [](double x) { return std::max(x, 0.0); }},
      {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
      {"Sigmoid", sigmoid_of},
      {"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"Gelu", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2))); }},
      {"Gelu",
       [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
       {{"approximate", std::string("tanh")}}},
      {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"Swish", [](double x) { return x * sigmoid_of(x); }},
      {"Shrink", [](double x) { return std::fabs(x) > 0.5 ? x : 0; }},
      {"Selu",
       [](double x) { return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * elu_of(x)); }},
  };
  Tensor x(DType::f64, {9});
  for (int i = 0; i < 9; ++i) x.data_as<double>()[i] = 0.9 * (i - 4) + 0.1;
  for (const Activation& each : all) {
    SCOPED_TRACE(each.op);
    ConvertedNode node(make_node(each.op, {"x"}, {"y"}, each.attributes), 24);
    const Tensor y = node.brings(x).value();
    ASSERT_EQ(y.dtype(), DType::f64);
    for (int i = 0; i < 9; ++i) EXPECT_NEAR(y.data_as<double>()[i], each.exact(x.data_as<double>()[i]), 1e-12) << i;
  }
}

TEST(OnnxActivations, SoftmaxOfDoublesKeepsItsDigits) {
  Tensor x(DType::f64, {2});
  x.data_as<double>()[0] = 0;
  x.data_as<double>()[1] = 0.1;
  ConvertedNode plain(make_node("Softmax", {"x"}, {"y"})), logarithm(make_node("LogSoftmax", {"x"}, {"y"}));
  EXPECT_NEAR(plain.brings(x).value().data_as<double>()[1], sigmoid_of(0.1), 1e-15);
  EXPECT_NEAR(logarithm.brings(x).value().data_as<double>()[1], std::log(sigmoid_of(0.1)), 1e-15);
}

}  // namespace
}  // namespace weft::onnx
