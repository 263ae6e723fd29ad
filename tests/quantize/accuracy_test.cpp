// What a model is worth on data with labels, and which layers are left out for it.
#include "weft/quantize/accuracy.h"

#include <gmock/gmock.h>

#include "tests/support/error_of.h"
#include "tests/support/quantizer_rig.h"
#include "weft/data/dataset/dataset.h"

namespace weft::quantize {
namespace {

using ::testing::HasSubstr;

TEST_F(QuantizerTest, ClassesOfNaNAreAnError) {
  const LabelledData data{{1,
                           [](int64_t) {
                             Tensor tensor = batch(0);
                             tensor.data_as<float>()[0] = NAN;
                             return tensor;
                           }},
                          [](int64_t) { return Tensor(DType::i32, Shape{4}); }};
  EXPECT_THAT(test::error_of([&] { measure(small_model(), data, runner_); }, ErrorKind::numeric),
              HasSubstr("has a NaN for a sample of batch 0"));
}

/// A model that gives what it reads, and data of one batch of it.
class Measured : public QuantizerTest {
 protected:
  double measured(const Tensor& output, const Tensor& targets, Criterion criterion) {
    onnx::Model model;
    model.ir_version = 8;
    model.opsets[""] = 17;
    model.graph.inputs = {info("x", output.shape().dims())};
    model.graph.outputs = {info("logits", output.shape().dims())};
    model.graph.nodes = {onnx::node_with_output("Identity", {"x"}, "logits")};
    const LabelledData data{{1, [&](int64_t) { return output; }}, [&](int64_t) { return targets; }, criterion};
    return measure(model, data, runner_);
  }
  static Tensor labels(const Shape& shape, const std::vector<int32_t>& numbers) {
    return Tensor::of_i32(shape, numbers);
  }
};

TEST_F(Measured, PerplexityIsTheExponentOfTheMeanOverTokensThatCount) {
  const float three = std::log(3.0f);  // beside a 0: three quarters
  const Tensor output = Tensor::of({1, 3, 2}, {{three, 0, 0, 0, 9, -9}});
  EXPECT_NEAR(measured(output, labels({1, 3}, {0, 1, data::kIgnoredTarget}), Criterion::perplexity),
              std::sqrt(4.0 / 3 * 2), 1e-6);
  const Tensor rows = Tensor::of({3, 2}, {{three, 0, 0, 0, 9, -9}});  // the same, a row each
  EXPECT_NEAR(measured(rows, labels({1, 3}, {0, 1, data::kIgnoredTarget}), Criterion::perplexity),
              std::sqrt(4.0 / 3 * 2), 1e-6);
}

TEST_F(Measured, AccuracyOfPixelsReadsClassesBehindTheBatch) {
  const Tensor output = Tensor::of({1, 2, 1, 4}, {{1, 0, 1, 0, 0, 1, 0, 1}});
  EXPECT_EQ(measured(output, labels({1, 1, 4}, {0, 1, 1, data::kIgnoredTarget}), Criterion::accuracy), 2.0 / 3);
}

TEST_F(Measured, ValuesHaveASquaredError) {
  EXPECT_EQ(measured(Tensor::of({2, 1}, {{1, 5}}), Tensor::of({2, 1}, {{0, 2}}), Criterion::squared_error), 5.0);
}

TEST_F(Measured, AnOutputWithoutARowForEachTargetIsRefused) {
  EXPECT_THAT(
      test::error_of(
          [&] {
            measured(random_tensor({2, 3, 4}, 1), labels({2, 5}, std::vector<int32_t>(10)), Criterion::perplexity);
          },
          ErrorKind::shape),
      HasSubstr("the output 'logits' is f32[2,3,4], which is no row of f32 for each target of i32[2,5]"));
}

TEST(LossOf, IsPointsOfAnAccuracyAndPerCentOfTheOthers) {
  EXPECT_NEAR(loss_of(Criterion::accuracy, 0.9, 0.875), 2.5, 1e-12);
  EXPECT_DOUBLE_EQ(loss_of(Criterion::perplexity, 4, 5), 25);
  EXPECT_DOUBLE_EQ(loss_of(Criterion::squared_error, 4, 3), -25);
}

TEST(LeaveOutFirst, TakesAsFewAsWillDo) {
  const std::vector<std::string> layers{"a", "b", "c", "d", "e", "f", "g"};
  for (size_t needed = 1; needed <= layers.size(); ++needed) {
    int measured = 0;
    const MixedPrecision found = leave_out_first(layers, 0.5, [&](const std::set<std::string>& left_out) {
      ++measured;
      return left_out.size() >= needed ? 0.4 : 5.0;
    });
    EXPECT_EQ(found.left_out.size(), needed);
    EXPECT_LE(measured, 6);
  }
}

TEST(LeaveOutFirst, EndsWithAllWhereNothingHelps) {
  const MixedPrecision found = leave_out_first({"a", "b"}, 0.5, [](const auto&) { return 3.0; });
  EXPECT_EQ(found.left_out.size(), 2u);
  EXPECT_EQ(found.loss, 3.0);
}

}  // namespace
}  // namespace weft::quantize
