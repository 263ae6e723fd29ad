// Losses and accuracies where some labels do not count, beside PyTorch's and by hand.
#include "weft/step/metrics/counted_labels.h"

#include <gtest/gtest.h>

#include <map>

#include "weft/cpu/cpu_backend.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/runtime/interpret.h"

namespace weft::step {
namespace {

class CountedLabels : public ::testing::Test {
 protected:
  CountedLabels()
      : graph_(registry_, "test"),
        logits_(graph_.add_input(InputKind::batch, "logits", {DType::f32, {6, 3}, {}})),
        labels_(graph_.add_input(InputKind::batch, "labels", {DType::i32, {6}, {}})) {}
  /// Of the value, where each row's largest logit is that of `predicted`.
  std::vector<float> values(ValueId result, const std::vector<int32_t>& predicted, const std::vector<int32_t>& labels) {
    graph_.add_output("result", result);
    Tensor logits(DType::f32, Shape{6, 3});
    for (size_t row = 0; row < 6; ++row) logits.data_as<float>()[row * 3 + static_cast<size_t>(predicted[row])] = 1;
    const std::map<std::string, Tensor> feed{{"logits", std::move(logits)}, {"labels", Tensor::of_i32({6}, labels)}};
    const Tensor tensor = evaluate_graph(graph_, feed, CpuBackend(1)).at("result");
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements()};
  }
  float value(ValueId result, const std::vector<int32_t>& predicted, const std::vector<int32_t>& labels) {
    return values(result, predicted, labels).front();
  }
  OpRegistry registry_ = ops::make_registry();
  Graph graph_;
  ValueId logits_, labels_;
};

TEST_F(CountedLabels, Counts) {
  EXPECT_EQ(value(count_labels(graph_, labels_), {0, 0, 0, 0, 0, 0}, {0, -100, 2, 1, -100, 0}), 4);
}

// torch.nn.functional.cross_entropy(logits, labels) with these logits: -log(e / (e + 2)) and -log(1 / (e + 2))
TEST_F(CountedLabels, MeanIsOverThoseThatCount) {
  const ValueId losses = ops::cross_entropy(graph_, logits_, labels_);
  const ValueId mean = mean_of_counted(graph_, losses, count_labels(graph_, labels_), "loss");
  EXPECT_NEAR(value(mean, {0, 0, 0, 0, 0, 0}, {0, -100, 2, -100, -100, -100}), 1.0514447f, 1e-6);
}

TEST_F(CountedLabels, MeanOfNoneIsZero) {
  const ValueId losses = ops::cross_entropy(graph_, logits_, labels_);
  const ValueId mean = mean_of_counted(graph_, losses, count_labels(graph_, labels_), "loss");
  EXPECT_EQ(value(mean, {0, 0, 0, 0, 0, 0}, std::vector<int32_t>(6, -100)), 0);
}

TEST_F(CountedLabels, ASequenceIsRightAsAWhole) {
  const std::vector<int32_t> labels{2, 1, -100, 0, 2, 1};
  const ValueId right = count_right_sequences(graph_, logits_, labels_, 2, "right");
  EXPECT_EQ(value(right, {2, 1, 0, 0, 2, 0}, labels), 1) << "what is ignored does not matter, one mistake does";
}

TEST_F(CountedLabels, ScalesToAll) {
  const ValueId correct = ops::count_correct(graph_, logits_, labels_);
  const ValueId scaled = scale_to_all(graph_, correct, count_labels(graph_, labels_), 6, "all");
  EXPECT_NEAR(value(scaled, {2, 1, 0, 0, 0, 0}, {2, 1, -100, 1, -100, -100}), 6 * 2.0f / 3, 1e-6);
}

TEST_F(CountedLabels, OverlapsLeaveOutWhatIsIgnored) {
  const Overlap overlap = overlap_of_classes(graph_, logits_, labels_);
  const std::vector<int32_t> predicted{2, 1, 0, 0, 0, 2}, labels{2, 1, -100, 1, -100, 1};
  EXPECT_EQ(values(overlap.intersections, predicted, labels), (std::vector<float>{0, 1, 1}));
}

TEST_F(CountedLabels, UnionsAreOfEither) {
  const Overlap overlap = overlap_of_classes(graph_, logits_, labels_);
  const std::vector<int32_t> predicted{2, 1, 0, 0, 0, 2}, labels{2, 1, -100, 1, -100, 1};
  EXPECT_EQ(values(overlap.unions, predicted, labels), (std::vector<float>{1, 3, 2}));
}

}  // namespace
}  // namespace weft::step
