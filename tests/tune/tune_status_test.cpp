// Where a study stands, on trials made by hand.
#include "weft/tune/results/tune_status.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"
#include "weft/library/library.h"
#include "weft/tune/study/owner.h"
#include "weft/tune/trials/trial_chooser.h"

namespace weft::tune {
namespace {

using State = StudyTrial::State;

StudySettings rate_settings() {
  return {.space = Space({real("rate", 0, 1)}), .objectives = {{"validation_loss", false}}};
}

StudyTrial finished(double predicted, double measured) {
  return {.state = State::finished,
          .target = 10,
          .results = {1.0},
          .curve = {{10, 1.0}},
          .plan = {.epochs = 10, .seconds = predicted},
          .seconds = measured};
}

StudyTrial running(double predicted, int64_t epochs) {
  StudyTrial trial{.state = State::running, .target = 10, .plan = {.epochs = 10, .seconds = predicted}};
  if (epochs > 0) trial.curve = {{epochs, 1.0}};
  return trial;
}

TEST(TuneStatus, WhatIsLeftIsPredictedAndCorrectedByWhatOthersTook) {
  // Twice as long as predicted: 2 x 40 s are left of the running one, and 20 s for the one to come.
  const TuneStatus status = status_of(rate_settings(), {finished(10, 20), running(50, 2)}, 3, 2, std::nullopt);
  ASSERT_TRUE(status.seconds_left);
  EXPECT_DOUBLE_EQ(*status.seconds_left, (80.0 + 20.0) / 2);
  EXPECT_EQ(status.done, 1);
  EXPECT_EQ(status.running, 1);
}

TEST(TuneStatus, WithoutPredictionsTheMeanCounts) {
  const TuneStatus status = status_of(rate_settings(), {finished(0, 20), running(0, 0)}, 3, 1, std::nullopt);
  EXPECT_DOUBLE_EQ(status.seconds_left.value(), 10.0 + 20.0);
}

TEST(TuneStatus, NoMoreIsLeftThanTheTimeOfTheSearch) {
  EXPECT_DOUBLE_EQ(status_of(rate_settings(), {finished(10, 20)}, 100, 1, 5.0).seconds_left.value(), 5.0);
}

TEST(TrialChooserOrder, TheLongestInterruptedTrialGoesOnFirst) {
  const TemporaryFolder folder;
  Study study = Study::create(folder.path() / "study", rate_settings());
  for (const auto& [seconds, epochs] : {std::pair{10.0, 0}, std::pair{60.0, 9}, std::pair{30.0, 2}})
    study.change([&, seconds = seconds, epochs = epochs](const std::vector<StudyTrial>& trials) {
      StudyTrial trial = running(seconds, epochs);
      trial.number = static_cast<int64_t>(trials.size());
      trial.state = State::interrupted;
      trial.values = {{"rate", 0.5}};
      return trial;
    });
  const Library library = standard_library();
  TrialChooser chooser(library, study, 3, this_process(), {});
  EXPECT_EQ(chooser.choose(study.trials())->number, 2) << "24 s are left, of the others 10 s and 6 s";
}

}  // namespace
}  // namespace weft::tune
