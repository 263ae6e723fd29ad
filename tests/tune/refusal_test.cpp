// Trials that break constraints.
#include "weft/tune/study/refusal.h"

#include <gtest/gtest.h>

namespace weft::tune {
namespace {

std::vector<Constraint> constraints() {
  return {parse_constraint("parameters <= 100"), parse_constraint("memory <= 1MB")};
}

StudyTrial refused(int64_t number, int64_t parameters, int64_t memory) {
  return {.number = number,
          .state = StudyTrial::State::refused,
          .plan = {.parameters = parameters, .memory = memory, .epochs = 1}};
}

TEST(Refusal, NamesEachConstraintThatIsBroken) {
  const std::string reason = why_refused(constraints(), {.parameters = 200, .memory = 3'000'000});
  EXPECT_NE(reason.find("parameters 200, but parameters <= 100; memory"), std::string::npos) << reason;
  EXPECT_NE(reason.find("but memory <= 1MB"), std::string::npos) << reason;
  EXPECT_EQ(why_refused(constraints(), {.parameters = 100, .memory = 1'000}), "");
}

TEST(Refusal, TheNearestBreaksItsWorstConstraintTheLeast) {
  // Trial 0 nearly keeps to the first constraint, and is far from the second one.
  const std::string nearest = nearest_refused(constraints(), {refused(0, 101, 9'000'000), refused(1, 150, 1'500'000)});
  EXPECT_TRUE(nearest.starts_with("the nearest is trial 1 with parameters 150")) << nearest;
}

TEST(Refusal, TrialsThatTrainedAreNotNear) {
  StudyTrial trained = refused(0, 10, 10);
  trained.state = StudyTrial::State::finished;
  EXPECT_EQ(nearest_refused(constraints(), {trained}), "");
}

}  // namespace
}  // namespace weft::tune
