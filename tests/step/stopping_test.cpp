// [stop] and the metrics it watches.
#include "weft/step/stopping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "weft/step/monitor.h"

namespace weft::step {
namespace {

EpochMetrics of_validation(double loss, double accuracy) {
  return {.validation_loss = loss, .validation_metrics = {{"accuracy", accuracy}}};
}

/// The number of evaluations after which a run ends; -1: it does not.
int evaluations_until_end(const spec::StopSpec& stop, const std::vector<EpochMetrics>& measured,
                          std::string* reason = nullptr) {
  StoppingState state;
  for (size_t at = 0; at < measured.size(); ++at) {
    state = after_evaluation(state, stop, measured[at]);
    const std::string why = reason_to_stop(state, stop, measured[at]);
    if (reason != nullptr) *reason = why;
    if (!why.empty()) return static_cast<int>(at) + 1;
  }
  return -1;
}

TEST(Monitor, FindsEachMetricByItsName) {
  EpochMetrics metrics = of_validation(0.5, 0.75);
  metrics.train_loss = 0.25;
  metrics.test_loss = 2;
  EXPECT_EQ(monitored("train_loss", metrics), 0.25);
  EXPECT_EQ(monitored("validation_loss", metrics), 0.5);
  EXPECT_EQ(monitored("validation_accuracy", metrics), 0.75);
  EXPECT_EQ(monitored("test_loss", metrics), 2);
  EXPECT_EQ(monitored("test_accuracy", metrics), std::nullopt);
}

TEST(Monitor, LossesAreBetterWhereTheyAreLower) {
  const Entries& entries = standard_entries();
  EXPECT_FALSE(higher_is_better("validation_loss", entries));
  EXPECT_TRUE(higher_is_better("validation_accuracy", entries));
  EXPECT_FALSE(higher_is_better("validation_rmse", entries));
}

TEST(Stop, AfterPatienceEvaluationsWithoutImprovement) {
  const spec::StopSpec stop{.monitor = "validation_loss", .patience = 2};
  std::string reason;
  EXPECT_EQ(evaluations_until_end(stop,
                                  {of_validation(1, 0), of_validation(0.9, 0), of_validation(0.95, 0),
                                   of_validation(0.85, 0), of_validation(0.86, 0), of_validation(0.86, 0)},
                                  &reason),
            6);
  EXPECT_EQ(reason, "stop.patience");
}

TEST(Stop, ImprovementsSmallerThanTheLeastChangeDoNotCount) {
  const spec::StopSpec stop{.monitor = "validation_accuracy", .patience = 2, .least_change = 0.01};
  EXPECT_EQ(evaluations_until_end(stop, {of_validation(0, 0.9), of_validation(0, 0.905), of_validation(0, 0.909)}), 3);
}

TEST(Stop, AtTheTarget) {
  std::string reason;
  EXPECT_EQ(evaluations_until_end({.monitor = "validation_accuracy", .target = "0.95"},
                                  {of_validation(0, 0.9), of_validation(0, 0.95)}, &reason),
            2);
  EXPECT_EQ(reason, "stop.target");
  EXPECT_EQ(evaluations_until_end({.monitor = "validation_loss", .target = "0.5"},
                                  {of_validation(0.6, 0), of_validation(0.4, 0)}),
            2);
}

TEST(Stop, NoNumberIsNoImprovementAndNoBestValue) {
  const spec::StopSpec stop{.monitor = "validation_loss", .patience = 3};
  const double nan = std::nan("");
  EXPECT_EQ(evaluations_until_end(stop, {of_validation(nan, 0), of_validation(nan, 0), of_validation(1, 0)}), -1);
}

TEST(Stop, EvaluationsThatDidNotMeasureItDoNotCount) {
  const spec::StopSpec stop{.monitor = "validation_loss", .patience = 1};
  const StoppingState state{.best = 1, .evaluations_since = 0};
  EXPECT_EQ(after_evaluation(state, stop, {}), state);
}

TEST(Stop, WithoutPatienceOrTargetNothingEnds) {
  EXPECT_EQ(evaluations_until_end({.monitor = "validation_loss"},
                                  {of_validation(1, 0), of_validation(2, 0), of_validation(3, 0)}),
            -1);
}

}  // namespace
}  // namespace weft::step
