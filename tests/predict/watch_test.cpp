#include "weft/predict/watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::predict {
namespace {

Prediction of_steps(double seconds, double spread, int64_t steps = 1000) {
  Prediction prediction;
  StagePrediction stage{.first_step = 0, .steps = steps, .batch = 32};
  stage.time.seconds[0] = seconds;
  stage.time.spread = spread;
  prediction.stages.push_back(stage);
  prediction.memory.activations = 500 << 20;
  return prediction;
}

/// What is said over steps of these times.
std::vector<std::string> said(Watch& watch, const std::vector<double>& seconds) {
  std::vector<std::string> lines;
  for (size_t step = 0; step < seconds.size(); ++step)
    if (auto line = watch.on_step(static_cast<int64_t>(step), seconds[step])) lines.push_back(*line);
  return lines;
}

std::vector<double> then(std::vector<double> first, size_t count, double seconds) {
  first.insert(first.end(), count, seconds);
  return first;
}

TEST(Watch, SaysNothingOfARunAsPredicted) {
  Watch watch(of_steps(0.1, 0.05));
  EXPECT_TRUE(said(watch, std::vector<double>(500, 0.102)).empty());
}

TEST(Watch, APlantedSlowdownIsSaidOnce) {
  Watch watch(of_steps(0.1, 0.05));
  const std::vector<std::string> lines = said(watch, then(std::vector<double>(200, 0.1), 300, 0.14));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("steps take 140 ms"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("more than predicted: 100 ms"), std::string::npos) << lines[0];
}

TEST(Watch, AFewSlowStepsAreNoSlowdown) {
  std::vector<double> seconds(500, 0.1);
  for (size_t at = 0; at < seconds.size(); at += 10) seconds[at] = 1;
  Watch watch(of_steps(0.1, 0.05));
  EXPECT_TRUE(said(watch, seconds).empty());
}

TEST(Watch, WithinAWideRangeASlowdownShowsBesideTheBeginning) {
  Watch watch(of_steps(0.1, 0.6));
  const std::vector<std::string> lines = said(watch, then(std::vector<double>(100, 0.1), 300, 0.19));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("1.9 times as long as before"), std::string::npos) << lines[0];
}

TEST(Watch, StepsThatAreFasterThanPredictedAreSaidOnce) {
  Watch watch(of_steps(0.1, 0.05));
  const std::vector<std::string> lines = said(watch, std::vector<double>(300, 0.05));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("less than predicted"), std::string::npos) << lines[0];
}

TEST(Watch, EachStageHasItsOwnRange) {
  Prediction prediction = of_steps(0.1, 0.05, 100);
  prediction.stages.push_back(prediction.stages[0]);
  prediction.stages[1].first_step = 100;
  prediction.stages[1].time.seconds[0] = 0.4;
  Watch watch(prediction);
  EXPECT_TRUE(said(watch, then(std::vector<double>(100, 0.1), 300, 0.4)).empty());
}

TEST(Watch, APlantedLeakIsSaidOnce) {
  Watch watch(of_steps(0.1, 0.05));
  int lines = 0;
  std::string line;
  for (int64_t step = 0; step < 100; ++step)
    if (auto found = watch.on_memory(step, (400 + 10 * step) << 20)) {
      ++lines;
      line = *found;
    }
  EXPECT_EQ(lines, 1);
  EXPECT_NE(line.find("more than the 524 MB that are planned"), std::string::npos) << line;
}

TEST(Watch, TheRunGoesOnAtTheMeanOfItsStepsAndWithWhatLiesBesideThem) {
  Watch watch(of_steps(0.1, 0.05));
  EXPECT_FALSE(watch.run_seconds());
  said(watch, then(std::vector<double>(Watch::kFirstSteps, 5.0), 95, 0.2));  // the first ones take long
  EXPECT_NEAR(*watch.run_seconds(), 1000 * 0.2, 1e-6) << "no evaluation is predicted here";
  watch.on_evaluation(Watch::kFirstSteps * 5.0 + 95 * 0.2 + 3);
  EXPECT_NEAR(*watch.run_seconds(), 1000 * 0.2 + 10 * 3, 1e-6);
}

TEST(Watch, WhatLiesBesideTheStepsCountsByStepsThatItFollowed) {
  Watch watch(of_steps(0.1, 0.05));
  said(watch, std::vector<double>(50, 0.1));
  watch.on_evaluation(50 * 0.1 + 2);
  said(watch, std::vector<double>(40, 0.1));  // behind the evaluation, and before the next one
  EXPECT_NEAR(*watch.run_seconds(), 1000 * 0.1 + 20 * 2, 1e-6);
}

TEST(Watch, EvaluationsCountAsPredictedWhereNoneHasEnded) {
  Prediction prediction = of_steps(0.1, 0.05);
  prediction.evaluation_seconds = interval_of(7, 0.1);
  Watch watch(prediction);
  said(watch, std::vector<double>(50, 0.1));
  EXPECT_NEAR(*watch.run_seconds(), 107, 1e-6);
}

}  // namespace
}  // namespace weft::predict
