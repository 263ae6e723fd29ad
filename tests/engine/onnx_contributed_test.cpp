// Operators that ONNX Runtime adds for quantized networks, small enough to compute by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/model_support.h"
#include "tests/support/error_of.h"
#include "weft/engine/onnx_session.h"
#include "weft/library/library.h"

namespace weft::engine {
namespace {

using onnx::AttributeList;
using onnx::fixed;
using onnx::make_model;
using onnx::make_node;
using onnx::reals;
using onnx::tensor_info;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor bytes(Shape shape, const std::vector<int>& values, DType dtype = DType::u8) {
  Tensor tensor(dtype, std::move(shape));
  for (size_t at = 0; at < values.size(); ++at) tensor.data_as<uint8_t>()[at] = static_cast<uint8_t>(values[at]);
  return tensor;
}

class Contributed : public testing::Test {
 protected:
  /// Scales 0.5 for x and the second operand, 0.25 for y; zero points 10, 20 and 5.
  std::vector<int> run(const std::string& op, const std::vector<std::string>& inputs, const Tensor& x,
                       const AttributeList& attributes = {}) {
    onnx::OnnxNode node = make_node(op, inputs, {"y"}, attributes);
    node.domain = "com.microsoft";
    std::vector<onnx::Dimension> shape;
    for (const int64_t size : x.shape()) shape.push_back(fixed(size));
    onnx::Model model = make_model({tensor_info("x", shape, DType::u8)}, {node}, {tensor_info("y", {}, DType::u8)});
    model.opsets["com.microsoft"] = 1;
    auto& known = model.graph.initializers;
    known["half"] = reals({}, {0.5f});
    known["quarter"] = reals({}, {0.25f});
    known["10"] = bytes({}, {10});
    known["5"] = bytes({}, {5});
    known["20"] = bytes({}, {20});
    known["b"] = bytes({2}, {22, 24});
    known["w"] = bytes({2, 2}, {2, 4, 6, 255}, DType::i8);  // the last is -1
    known["w.scales"] = reals({2}, {0.5f, 1});
    known["w.zeros"] = bytes({2}, {0, 0}, DType::i8);
    Tensor bias(DType::i32, Shape{2});
    bias.data_as<int32_t>()[0] = 4;
    bias.data_as<int32_t>()[1] = -2;
    known["bias"] = bias;
    OnnxSession session(std::move(model), library_.ops, *device_);
    const Tensor y = *session.run({{"x", x}}).at("y").tensor();
    EXPECT_EQ(y.dtype(), DType::u8);
    return {y.data_as<uint8_t>(), y.data_as<uint8_t>() + y.elements()};
  }

  const Library library_ = standard_library();
  const std::unique_ptr<Device> device_ = library_.device.make({.threads = 1, .kernels = library_.kernels});
};

TEST_F(Contributed, Adds) {
  // (12 - 10) 0.5 + (22 - 20) 0.5 = 2, (6 - 10) 0.5 + 2 = 0
  EXPECT_THAT(run("QLinearAdd", {"x", "half", "10", "b", "half", "20", "quarter", "5"}, bytes({2}, {12, 6})),
              ElementsAre(13, 5));
}

TEST_F(Contributed, Multiplies) {
  EXPECT_THAT(run("QLinearMul", {"x", "half", "10", "b", "half", "20", "quarter", "5"}, bytes({2}, {12, 14})),
              ElementsAre(9, 21));
}

TEST_F(Contributed, JoinsWhatHasScalesOfItsOwn) {
  EXPECT_THAT(run("QLinearConcat", {"quarter", "5", "x", "half", "10", "b", "quarter", "20"}, bytes({1}, {11}),
                  {{"axis", int64_t{0}}}),
              ElementsAre(7, 7, 9));
}

TEST_F(Contributed, AppliesFunctions) {
  EXPECT_THAT(run("QLinearLeakyRelu", {"x", "half", "10", "quarter", "5"}, bytes({2}, {12, 6}), {{"alpha", 0.5f}}),
              ElementsAre(9, 1));
  EXPECT_THAT(run("QLinearSigmoid", {"x", "half", "10", "quarter", "5"}, bytes({2}, {10, 255})), ElementsAre(7, 9));
}

TEST_F(Contributed, Averages) {
  const Tensor x = bytes({1, 1, 2, 2}, {10, 12, 14, 16});  // 1.5 on average
  EXPECT_THAT(run("QLinearGlobalAveragePool", {"x", "half", "10", "quarter", "5"}, x), ElementsAre(11));
  EXPECT_THAT(
      run("QLinearAveragePool", {"x", "half", "10", "quarter", "5"}, x, {{"kernel_shape", std::vector<int64_t>{1, 2}}}),
      ElementsAre(7, 15));
}

TEST_F(Contributed, MultipliesMatricesWithABiasOfSteps) {
  // x = (1, 2); columns of w: (1, 3) and (4, -1); the bias: 4 * 0.25 and -2 * 0.5.
  EXPECT_THAT(
      run("QGemm", {"x", "half", "10", "w", "w.scales", "w.zeros", "bias", "quarter", "5"}, bytes({1, 2}, {12, 14})),
      ElementsAre(5 + 4 * (1 + 6 + 1), 5 + 4 * (4 - 2 - 1)));
}

TEST_F(Contributed, OthersAreNamed) {
  EXPECT_THAT(test::error_of(
                  [&] {
                    run("QAttention", {"x", "half", "10"}, bytes({2}, {1, 2}));
                  },
                  ErrorKind::usage),
              HasSubstr("com.microsoft.QAttention"));
}

}  // namespace
}  // namespace weft::engine
