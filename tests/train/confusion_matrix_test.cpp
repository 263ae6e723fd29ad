// Counts and scores against the examples in the documentation of scikit-learn 1.2.
#include "weft/train/confusion_matrix.h"

#include <gtest/gtest.h>

namespace weft::train {
namespace {

using Labels = std::vector<int32_t>;

std::vector<std::vector<int64_t>> rows_of(const ConfusionMatrix& matrix) {
  std::vector<std::vector<int64_t>> rows;
  for (int64_t label = 0; label < matrix.classes(); ++label) {
    rows.emplace_back();
    for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted)
      rows.back().push_back(matrix.count(label, predicted));
  }
  return rows;
}

TEST(ConfusionMatrix, CountsAsScikitLearnsConfusionMatrix) {
  ConfusionMatrix matrix(3);
  matrix.add(Labels{2, 0, 2, 2, 0, 1}, Labels{0, 0, 2, 2, 0, 2});
  EXPECT_EQ(rows_of(matrix), (std::vector<std::vector<int64_t>>{{2, 0, 0}, {0, 0, 1}, {1, 0, 2}}));
}

TEST(ConfusionMatrix, ScoresAsScikitLearnsClassificationReport) {
  ConfusionMatrix matrix(3);
  matrix.add(Labels{0, 1, 2}, Labels{0, 0, 2});
  matrix.add(Labels{2, 2}, Labels{2, 1});
  const double precision[] = {0.50, 0.00, 1.00}, recall[] = {1.00, 0.00, 0.67}, f1[] = {0.67, 0.00, 0.80};
  const int64_t samples[] = {1, 1, 3};
  for (int64_t label = 0; label < 3; ++label) {
    const ClassScores scores = matrix.scores(label);
    EXPECT_NEAR(scores.precision.value(), precision[label], 0.005);
    EXPECT_NEAR(scores.recall.value(), recall[label], 0.005);
    EXPECT_NEAR(scores.f1.value(), f1[label], 0.005);
    EXPECT_EQ(scores.samples, samples[label]);
  }
  const MeanScores mean = matrix.mean_scores();
  EXPECT_NEAR(mean.precision, 0.50, 0.005);
  EXPECT_NEAR(mean.recall, 0.56, 0.005);
  EXPECT_NEAR(mean.f1, 0.49, 0.005);
}

TEST(ConfusionMatrix, WhatWouldDivideByZeroIsAbsent) {
  ConfusionMatrix matrix(3);
  matrix.add(Labels{0, 0}, Labels{0, 1});
  EXPECT_FALSE(matrix.scores(1).recall);     // no sample of it
  EXPECT_TRUE(matrix.scores(1).precision);   // but a prediction
  EXPECT_FALSE(matrix.scores(2).precision);  // neither
  EXPECT_FALSE(matrix.scores(2).f1);
  EXPECT_DOUBLE_EQ(matrix.mean_scores().recall, 0.25) << "over the two classes that occur";
}

TEST(ConfusionMatrix, WhatIsNoClassIsPassedOver) {
  ConfusionMatrix matrix(2);
  matrix.add(Labels{0, -100, 1, 7}, Labels{0, 1, 2, 1});
  EXPECT_EQ(rows_of(matrix), (std::vector<std::vector<int64_t>>{{1, 0}, {0, 0}}));
}

TEST(ConfusionMatrix, NamesTheMostConfusedPairsInAFixedOrder) {
  ConfusionMatrix matrix(4);
  matrix.add(Labels{3, 3, 1, 0, 2, 2}, Labels{1, 1, 0, 2, 2, 2});
  const std::vector<Confusion> pairs = matrix.most_confused(2);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(std::tuple(pairs[0].label, pairs[0].predicted, pairs[0].count), std::tuple(3, 1, 2));
  EXPECT_EQ(std::tuple(pairs[1].label, pairs[1].predicted, pairs[1].count), std::tuple(0, 2, 1));
}

}  // namespace
}  // namespace weft::train
