// What a search says about its keys.
#include "weft/tune/results/what_mattered.h"

#include <gtest/gtest.h>

#include "weft/tune/space/random.h"

namespace weft::tune {
namespace {

StudySettings settings() {
  return {.space = Space({real("rate", 0, 1), real("momentum", 0, 1)}), .objectives = {{"validation_loss", false}}};
}

/// Trials whose loss is what `rate` alone decides.
std::vector<StudyTrial> trials(int64_t count, double factor = 1) {
  std::vector<StudyTrial> made;
  for (int64_t number = 0; number < count; ++number) {
    Random random(1, number);
    const double rate = random.uniform(), momentum = random.uniform();
    made.push_back({.number = number,
                    .state = StudyTrial::State::finished,
                    .values = {{"rate", rate}, {"momentum", momentum}},
                    .results = {factor * rate}});
  }
  return made;
}

TEST(WhatMattered, NamesTheKeyThatDecides) {
  const std::string sentence = what_mattered(settings(), trials(40));
  EXPECT_TRUE(sentence.starts_with("What mattered for validation_loss: rate, which decides ")) << sentence;
  EXPECT_EQ(sentence.find("momentum"), std::string::npos) << sentence;
  EXPECT_TRUE(sentence.ends_with(" % of its variance.")) << sentence;
}

TEST(WhatMattered, SaysWhereNothingDid) {
  EXPECT_EQ(what_mattered(settings(), trials(40, 0)), "No key alone mattered for validation_loss.");
}

TEST(WhatMattered, IsSilentWhereNobodyCanTell) {
  EXPECT_EQ(what_mattered(settings(), trials(7)), "");
  StudySettings one = settings();
  one.space = Space({real("rate", 0, 1)});
  EXPECT_EQ(what_mattered(one, trials(40)), "");
}

}  // namespace
}  // namespace weft::tune
