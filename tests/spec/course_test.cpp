// Steps, samples and rates where epochs differ, against what is counted by hand.
#include "weft/spec/course.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/step/schedules/schedule.h"

namespace weft::spec {
namespace {

/// 100 samples in four epochs: 6 steps of 16, twice; 3 of 32; 12 of 8.
RunSpec four_epochs() {
  RunSpec spec;
  spec.epochs = 4;
  spec.batch = 16;
  spec.batch_schedule = {.boundaries = {2, -1}, .batches = {16, 32, 8}};
  return spec;
}

TEST(Course, StagesAreThoseOfTheLists) {
  const std::vector<Stage> stages = stages_of(four_epochs());
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].first_epoch, 0);
  EXPECT_EQ(stages[1].first_epoch, 2);
  EXPECT_EQ(stages[2].first_epoch, 3) << "-1: the last epoch";
  EXPECT_EQ(stages[0].batch, 16);
  EXPECT_EQ(stages[1].batch, 32);
  EXPECT_EQ(stages[2].batch, 8);
}

TEST(Course, WithoutListsThereIsOneStage) {
  RunSpec spec;
  spec.batch = 64;
  spec.accumulate = 3;
  const std::vector<Stage> stages = stages_of(spec);
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].batch, 64);
  EXPECT_EQ(stages[0].accumulate, 3);
  EXPECT_EQ(stages[0].image_height, 0);
}

TEST(Course, BoundariesBehindTheEndBeginNothing) {
  RunSpec spec = four_epochs();
  spec.epochs = 1.5;
  spec.batch_schedule = {.boundaries = {1, 2}, .batches = {16, 32, 8}};
  EXPECT_EQ(stages_of(spec).size(), 2u);
}

TEST(Course, OfAOneEpochRunTheLastEpochIsTheFirst) {
  RunSpec spec;
  spec.epochs = 1;
  spec.batch_schedule = {.boundaries = {-1}, .batches = {64, 8}};
  const std::vector<Stage> stages = stages_of(spec);
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].batch, 8);
}

TEST(Course, ImagesAndBatchesChangeEachAtItsTime) {
  RunSpec spec;
  spec.epochs = 6;
  spec.batch_schedule = {.boundaries = {4}, .batches = {64, 32}};
  spec.image_schedule = {.boundaries = {2, 4}, .sizes = {16, 24, 32}};
  const std::vector<Stage> stages = stages_of(spec);
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[1].shape(), StepShape(64, 24));
  EXPECT_EQ(stages[2].shape(), StepShape(32, 32));
  spec.image_schedule.sizes = {16, 16, 32};
  EXPECT_EQ(stages_of(spec).size(), 2u) << "nothing changes after 2 epochs";
}

TEST(Course, AShapeThatComesAgainIsOneShape) {
  RunSpec spec;
  spec.epochs = 3;
  spec.batch_schedule = {.boundaries = {1, 2}, .batches = {16, 32, 16}};
  EXPECT_EQ(stages_of(spec).size(), 3u);
  EXPECT_EQ(shapes_of(spec), (std::vector<StepShape>{16, 32}));
}

TEST(Course, CountsStepsAndSamples) {
  const Course course(four_epochs(), 100);
  EXPECT_EQ(course.total_steps(), 6 + 6 + 3 + 12);
  for (const auto& [epoch, steps] : {std::pair(0, 6), {1, 6}, {2, 3}, {3, 12}})
    EXPECT_EQ(course.steps_of(epoch), steps) << epoch;
  EXPECT_EQ(course.samples_before(12), 2 * 96);
  EXPECT_EQ(course.samples_before(14), 2 * 96 + 2 * 32);
  EXPECT_EQ(course.samples_before(27), 2 * 96 + 96 + 96);
}

/// 100 samples in three epochs, batches of 16 until 45 % of the second, then of 8: 6 steps, 3 and 6, 12.
RunSpec within_the_second() {
  RunSpec spec;
  spec.epochs = 3;
  spec.batch = 16;
  spec.batch_schedule = {.boundaries = {1.45}, .batches = {16, 8}};
  return spec;
}

TEST(Course, AStageMayBeginWithinAnEpoch) {
  const Course course(within_the_second(), 100);
  EXPECT_EQ(course.total_steps(), 6 + 9 + 12);
  EXPECT_EQ(course.steps_of(1), 9);
  EXPECT_EQ(course.stage_of(1, 2).batch, 16);
  EXPECT_EQ(course.stage_of(1, 3).batch, 8);
  EXPECT_EQ(course.stage_end(1, 0), 3);
  EXPECT_EQ(course.stage_end(1, 3), 9);
  EXPECT_EQ(course.samples_before(9), 96 + 48);
  EXPECT_EQ(course.samples_before(15), 96 + 48 + 48);
  EXPECT_EQ(course.batches_before_in_epoch(1, 5), 5);
}

TEST(Course, EveryStepHasItsPlaceWhereStagesChangeWithinEpochs) {
  const Course course(within_the_second(), 100);
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch)
    for (int64_t in_epoch = 0; in_epoch < course.steps_of(epoch); ++in_epoch, ++step)
      EXPECT_EQ(course.place_of(step), std::pair(epoch, in_epoch)) << step;
  EXPECT_EQ(step, course.total_steps());
}

TEST(Course, TheClockAndTheStepsOfEpochsRiseThroughAPartOfOne) {
  const Course course(within_the_second(), 100);
  EXPECT_DOUBLE_EQ(course.step_at(1), 6);
  EXPECT_DOUBLE_EQ(course.step_at(1.48), 9);
  EXPECT_DOUBLE_EQ(course.step_at(2), 15);
  EXPECT_DOUBLE_EQ(course.clock(9), 1.48 * 6);
  for (int64_t step = 1; step < course.total_steps(); ++step) EXPECT_GT(course.clock(step), course.clock(step - 1));
}

TEST(Course, TheClockCountsEpochsWhereTheFirstOneChanges) {
  RunSpec spec;
  spec.epochs = 2;
  spec.batch = 10;
  spec.batch_schedule = {.boundaries = {0.5}, .batches = {10, 5}};
  const Course course(spec, 100);
  EXPECT_EQ(course.steps_of_first_epoch(), 5 + 10);
  EXPECT_DOUBLE_EQ(course.clock(5), 0.5 * 15);
  EXPECT_DOUBLE_EQ(course.clock(15), 15);
  EXPECT_DOUBLE_EQ(course.clock(25), 1.5 * 15);
}

TEST(Course, AStageMayBeTooShortForAStep) {
  RunSpec spec;
  spec.epochs = 2;
  spec.batch = 10;
  spec.batch_schedule = {.boundaries = {0.95, 1}, .batches = {10, 50, 10}};
  const std::vector<Stage> stages = stages_of(spec);
  const Course course(spec, 100);
  EXPECT_EQ(course.steps_of_stage(stages[1]), 0);
  EXPECT_EQ(course.steps_of_stage(stages[2]), 10);
}

TEST(Course, ARunMayEndInThePartThatAStageBegan) {
  RunSpec spec = within_the_second();
  spec.epochs = 1.64;
  const Course course(spec, 100);
  EXPECT_EQ(course.total_steps(), 6 + 3 + 2) << "16 samples of the part, in batches of 8";
}

TEST(Course, WithinAnEpochBatchesThatFillNoStepAreLeftOverAtItsEndOnly) {
  RunSpec spec;
  spec.epochs = 2;
  spec.batch = 8;
  spec.batch_schedule = {.boundaries = {0.5}, .batches = {8, 4}, .accumulate = {3, 2}};
  const Course course(spec, 100);
  EXPECT_EQ(course.steps_of(0), 2 + 6);
  EXPECT_EQ(course.batches_left_over(0), 1) << "13 batches of 4";
  EXPECT_EQ(course.batches_before_in_epoch(0, 3), 6 + 2);
}

TEST(Course, CountsBatchesOfAccumulatedSteps) {
  RunSpec spec = four_epochs();
  spec.batch_schedule = {.boundaries = {2}, .batches = {}, .accumulate = {1, 3}};
  const Course course(spec, 100);
  EXPECT_EQ(course.steps_of(2), 2) << "6 batches of 16";
  EXPECT_EQ(course.total_steps(), 16);
  EXPECT_EQ(course.batches_before(12), 12);
  EXPECT_EQ(course.batches_before(13), 15);
  EXPECT_EQ(course.samples_before(13), 15 * 16);
  EXPECT_TRUE(accumulates(spec));
}

TEST(Course, TheLastEpochMayBeAPart) {
  RunSpec spec = four_epochs();
  spec.epochs = 3.3;
  const Course course(spec, 100);
  EXPECT_EQ(course.steps_of(3), 4) << "3.6 of 12, rounded up";
  EXPECT_EQ(course.total_steps(), 6 + 6 + 3 + 4);
}

TEST(Course, EpochsAndStepsAreOneAnothersPlace) {
  const Course course(four_epochs(), 100);
  EXPECT_DOUBLE_EQ(course.step_at(1.5), 9);
  EXPECT_DOUBLE_EQ(course.step_at(2), 12);
  EXPECT_DOUBLE_EQ(course.step_at(3.25), 18);
  for (const auto& [step, epochs] : {std::pair(9, 1.5), {12, 2.0}, {13, 2 + 1.0 / 3}, {15, 3.0}, {18, 3.25}, {27, 4.0}})
    EXPECT_DOUBLE_EQ(course.clock(step), 6 * epochs) << step;
}

TEST(Course, RateFollowsTheSamplesOfAStep) {
  RunSpec spec = four_epochs();
  spec.accumulate = 2;  // the rate is for 32 samples
  const Stage stage{.batch = 64, .accumulate = 2};
  EXPECT_EQ(scaled_rate(spec, stage), 1);
  spec.batch_schedule.rate_scaling = "linear";
  EXPECT_DOUBLE_EQ(scaled_rate(spec, stage), 4);
  spec.batch_schedule.rate_scaling = "square_root";
  EXPECT_DOUBLE_EQ(scaled_rate(spec, stage), 2);
}

TEST(CourseSchedule, ByEpochsChangesWhereItsEpochsBegin) {
  const Course course(four_epochs(), 100);
  const auto levels =
      step::make_schedule({.name = "piecewise", .boundaries = {1, 3}, .factors = {1, 0.5, 0.25}}, 1, course);
  EXPECT_EQ(levels(5), 1);
  EXPECT_EQ(levels(6), 0.5);
  EXPECT_EQ(levels(14), 0.5);
  EXPECT_EQ(levels(15), 0.25) << "step 15 begins epoch 3";
  const auto stairs = step::make_schedule({.name = "step", .every_epochs = 1, .factor = 0.5}, 1, course);
  for (const auto& [step, rate] : {std::pair(5, 1.0), {6, 0.5}, {11, 0.5}, {12, 0.25}, {14, 0.25}, {15, 0.125}})
    EXPECT_DOUBLE_EQ(stairs(step), rate) << step;
  const auto lines =
      step::make_schedule({.name = "piecewise", .boundaries = {2, 4}, .factors = {1, 0}, .lines = true}, 1, course);
  EXPECT_NEAR(lines(15), 0.5, 1e-12) << "half of the epochs, not of the steps, between 2 and 4";
}

TEST(CourseSchedule, ByStepsFallsOverAllOfThem) {
  const Course course(four_epochs(), 100);
  const auto wave = step::make_schedule({.name = "cosine"}, 1, course);
  for (int64_t step = 0; step < 27; ++step) EXPECT_DOUBLE_EQ(wave(step), step::cosine(step, 27, 1)) << step;
  const auto cycle = step::make_schedule({.name = "one_cycle"}, 1, course);
  EXPECT_DOUBLE_EQ(cycle(26), 1.0 / 25 / 1e4) << "ends with the last step";
}

TEST(CourseSchedule, WarmUpEndsInItsEpoch) {
  const Course course(four_epochs(), 100);
  const auto rate = step::make_schedule({.name = "constant", .warmup_epochs = 2 + 1.0 / 3}, 1, course);
  EXPECT_DOUBLE_EQ(rate(0), 1.0 / 13);
  EXPECT_LT(rate(11), 1);
  EXPECT_DOUBLE_EQ(rate(12), 1) << "13 steps: two epochs of 6 and a third of one of 3";
}

}  // namespace
}  // namespace weft::spec
