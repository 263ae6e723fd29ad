// Numbers that ONNX's own tests do not show: weft/onnx/operators/elementwise.cpp and reductions.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/convert_support.h"

namespace weft::onnx {
namespace {

Tensor doubles(Shape shape, const std::vector<double>& values) {
  Tensor tensor(DType::f64, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.data_as<double>());
  return tensor;
}

TEST(OnnxElementwise, PowersOfWholeNumbersAreExact) {
  for (const bool is_known : {false, true}) {
    ConvertedNode node(make_node("Pow", {"x", "power"}, {"y"}));
    node.brings(wholes({3}, {3, -94906267, 2}));
    is_known ? node.knows(wholes({}, {2})) : node.brings(wholes({}, {2}));
    const Tensor y = node.value();
    ASSERT_EQ(y.dtype(), DType::i64);
    EXPECT_EQ(y.data_as<int64_t>()[0], 9);
    EXPECT_EQ(y.data_as<int64_t>()[1], int64_t{94906267} * 94906267);  // neither an f32 nor an f64
    EXPECT_EQ(y.data_as<int64_t>()[2], 4);
  }
}

TEST(OnnxElementwise, APowerIsCutOffToTheBasesType) {
  ConvertedNode node(make_node("Pow", {"x", "power"}, {"y"}));
  Tensor base(DType::i32, {3});
  for (int i = 0; i < 3; ++i) base.data_as<int32_t>()[i] = i + 1;
  const Tensor y = node.brings(base).brings(reals({3}, {2, 0.5F, -1})).value();
  ASSERT_EQ(y.dtype(), DType::i32);
  EXPECT_EQ(y.data_as<int32_t>()[0], 1);
  EXPECT_EQ(y.data_as<int32_t>()[1], 1);  // of 1.41
  EXPECT_EQ(y.data_as<int32_t>()[2], 0);  // of 1/3
}

TEST(OnnxElementwise, PowersAndMeansOfDoublesKeepTheirDigits) {
  ConvertedNode power(make_node("Pow", {"x", "power"}, {"y"}));
  EXPECT_DOUBLE_EQ(power.brings(doubles({1}, {1.1})).knows(wholes({}, {3})).value().data_as<double>()[0],
                   std::pow(1.1, 3));
  ConvertedNode mean(make_node("Mean", {"a", "b", "c"}, {"y"}));
  mean.brings(doubles({1}, {1.1})).brings(doubles({1}, {1})).brings(doubles({1}, {1}));
  EXPECT_DOUBLE_EQ(mean.value().data_as<double>()[0], 3.1 / 3);
}

TEST(OnnxReductions, OfDoublesKeepTheirDigits) {
  const double large = 1e200;  // no f32
  for (const auto& [op, expected] :
       std::vector<std::pair<const char*, double>>{{"ReduceMean", large * 1.5},
                                                   {"ReduceLogSum", std::log(large) + std::log(3)},
                                                   {"ReduceLogSumExp", 2 * large},
                                                   {"ReduceSum", 3 * large}}) {
    ConvertedNode node(make_node(op, {"x"}, {"y"}, {{"keepdims", int64_t{0}}}));
    const Tensor y = node.brings(doubles({2}, {large, 2 * large})).value();
    ASSERT_EQ(y.dtype(), DType::f64) << op;
    EXPECT_DOUBLE_EQ(y.data_as<double>()[0], expected) << op;
  }
  ConvertedNode norm(make_node("ReduceL2", {"x"}, {"y"}, {{"keepdims", int64_t{0}}}));
  EXPECT_DOUBLE_EQ(norm.brings(doubles({2}, {1e100, 1e100})).value().data_as<double>()[0], std::sqrt(2.0) * 1e100);
}

}  // namespace
}  // namespace weft::onnx
