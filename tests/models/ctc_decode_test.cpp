// Greedy reading: repetitions, blanks, certainty.
#include "weft/models/ctc_decode.h"

#include <gtest/gtest.h>

namespace weft::models {
namespace {

/// One step per class given, at this probability; the rest is shared evenly by the other two.
std::vector<float> steps(const std::vector<int>& classes, const std::vector<float>& probabilities) {
  std::vector<float> all;
  for (size_t at = 0; at < classes.size(); ++at)
    for (int one = 0; one < 3; ++one)
      all.push_back(one == classes[at] ? probabilities[at] : (1 - probabilities[at]) / 2);
  return all;
}

TEST(CtcDecode, RepetitionsCountOnceUnlessABlankIsBetween) {
  const auto p = steps({0, 1, 1, 0, 1, 2, 2, 0}, std::vector<float>(8, 0.8f));
  EXPECT_EQ(read_greedily(p.data(), 8, 3, 3).classes, (std::vector<int32_t>{1, 1, 2}));
}

TEST(CtcDecode, NothingButBlanks) {
  const auto p = steps({0, 0}, {0.9f, 0.9f});
  EXPECT_TRUE(read_greedily(p.data(), 2, 3, 3).classes.empty());
}

TEST(CtcDecode, CertaintyIsTheLargestOfALettersSteps) {
  const auto p = steps({1, 1, 2}, {0.5f, 0.75f, 0.625f});
  EXPECT_EQ(read_greedily(p.data(), 3, 3, 3).certainty, (std::vector<float>{0.75f, 0.625f}));
}

TEST(CtcDecode, StepsMayLieApart) {
  auto p = steps({1, 0, 2, 0}, std::vector<float>(4, 0.8f));  // two samples side by side
  EXPECT_EQ(read_greedily(p.data(), 2, 3, 6).classes, (std::vector<int32_t>{1, 2}));
}

}  // namespace
}  // namespace weft::models
