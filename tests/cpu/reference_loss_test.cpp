// Cross-entropy against PyTorch, counting and embedding by hand.
#include <cmath>

#include "tests/cpu/reference_values.h"

namespace weft::reference_tests {
namespace {

// x = leaf(ramp(3, 4)); y = F.cross_entropy(x, torch.tensor([2, 0, 3]), reduction="none", label_smoothing=0 or 0.2)
// y.backward(torch.tensor([1.0, -2.0, 0.5]).double()); print(y, x.grad)
void check_cross_entropy(double smoothing, const std::vector<double>& losses, const std::vector<double>& gradient) {
  const Attributes attributes{{"label_smoothing", smoothing}};
  const Tensor logits = ramp({3, 4}), labels = integers({3}, {2, 0, 3});
  expect_values(call("cross_entropy", {logits, labels}, attributes)[0], losses);
  expect_values(call("cross_entropy_backward", {floats({3}, {1, -2, 0.5f}), logits, labels}, attributes)[0], gradient);
}

TEST(ReferenceLoss, CrossEntropy) {
  check_cross_entropy(0, {0.40807841, 1.8888001, 2.4080784},
                      {0.054580511, 0.1905047, -0.33507326, 0.089988049, 1.6974936, -1.055851, -0.1428939, -0.49874871,
                       0.027290255, 0.09525235, 0.33246337, -0.45500598});
}

TEST(ReferenceLoss, CrossEntropyWithLabelSmoothing) {
  check_cross_entropy(0.2, {0.69557841, 1.8388001, 2.2955784},
                      {0.0045805105, 0.1405047, -0.18507326, 0.039988049, 1.3974936, -0.95585102, -0.042893896,
                       -0.39874871, 0.0022902553, 0.07025235, 0.30746337, -0.38000598});
}

TEST(ReferenceLoss, LargeLogitsDoNotOverflow) {
  expect_values(call("cross_entropy", {floats({1, 2}, {1000, 0}), integers({1}, {1})})[0], {1000});
}

TEST(ReferenceLoss, ALabelThatIsNoClassGivesNotANumber) {
  const auto losses = call("cross_entropy", {floats({1, 2}, {0, 0}), integers({1}, {2})});
  EXPECT_TRUE(std::isnan(*losses[0].data_as<float>()));
}

TEST(ReferenceLoss, CountsTheFirstLargestLogit) {
  const Tensor logits = floats({3, 3}, {0, 5, 5, 1, 1, 1, 0, 0, 9});
  expect_values(call("count_correct", {logits, integers({3}, {1, 0, 2})})[0], {3});
  expect_values(call("count_correct", {logits, integers({3}, {2, 1, 2})})[0], {1});
}

TEST(ReferenceEmbedding, PicksRows) {
  const auto outputs = call("embedding", {floats({3, 2}, {1, 2, 3, 4, 5, 6}), integers({2, 2}, {2, 0, 0, 1})});
  ASSERT_EQ(outputs[0].shape(), (Shape{2, 2, 2}));
  expect_values(outputs[0], {5, 6, 1, 2, 1, 2, 3, 4});
}

TEST(ReferenceEmbedding, BackwardSumsRepeatedRows) {
  const auto outputs = call("embedding_backward", {floats({3, 2}, {1, 2, 3, 4, 5, 6}), integers({3}, {2, 0, 2})},
                            {{"rows", int64_t{4}}});
  expect_values(outputs[0], {3, 4, 0, 0, 6, 8, 0, 0});
}

}  // namespace
}  // namespace weft::reference_tests
