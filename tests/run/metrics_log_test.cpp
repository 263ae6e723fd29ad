// metrics.jsonl: valid JSON whatever was measured, and cut off where a run goes on.
#include "weft/run/metrics_log.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/temporary_folder.h"
#include "weft/base/files.h"

namespace weft::run {
namespace {

class MetricsLogTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::filesystem::path directory_ = folder_.path();
  const std::filesystem::path path_ = directory_ / "metrics.jsonl";
};

TEST_F(MetricsLogTest, WhatIsNotFiniteIsNull) {
  step::EpochMetrics metrics{.epoch = 0, .step = 10, .train_loss = std::numeric_limits<double>::infinity()};
  metrics.test_loss = std::nan("");
  metrics.test_metrics = {{"accuracy", 0.5}};
  MetricsLog(path_, {}).add(metrics);
  const auto record = nlohmann::json::parse(read_text(path_));
  EXPECT_TRUE(record["train_loss"].is_null());
  EXPECT_TRUE(record["test_loss"].is_null());
  EXPECT_EQ(record["test_accuracy"], 0.5);
}

TEST_F(MetricsLogTest, AStepHasItsBatchAndWhatSchedulesMove) {
  MetricsLog log(path_, {});
  log.add(step::StepMetrics{.step = 19, .learning_rate = 0.25, .loss = 2.0, .batch = 64});
  EXPECT_EQ(nlohmann::json::parse(read_text(path_)),
            nlohmann::json::parse(R"({"kind":"step","step":20,"epoch":1,"learning_rate":0.25,"loss":2.0,"batch":64})"));
  constexpr double kLong = -1.2345678901234567e-300;  // the longest that a number becomes
  const step::StepMetrics longest{.epoch = INT64_MAX - 1,
                                  .step = INT64_MAX / 20 * 20 - 1,
                                  .learning_rate = kLong,
                                  .loss = kLong,
                                  .batch = INT64_MAX,
                                  .image_height = INT64_MAX,
                                  .momentum = kLong,
                                  .gradient_norm = kLong};
  log.add(longest);
  const std::string text = read_text(path_);
  const auto record = nlohmann::json::parse(text.substr(text.find('\n')));
  EXPECT_EQ(record["image_height"], INT64_MAX);
  EXPECT_EQ(record["momentum"], kLong);
  EXPECT_EQ(record["gradient_norm"], kLong);
}

TEST_F(MetricsLogTest, SkippedStepsAreCountedBesideALossThatIsNotFinite) {
  step::StepMetrics metrics{.step = kStepsPerRecord - 1, .loss = std::nan("")};
  metrics.loss_scale = 0x1p100;
  metrics.skipped_steps = 7;
  MetricsLog(path_, {}).add(metrics);
  const auto record = nlohmann::json::parse(read_text(path_));
  EXPECT_TRUE(record["loss"].is_null());
  EXPECT_EQ(record["loss_scale"], 0x1p100);
  EXPECT_EQ(record["skipped_steps"], 7);
}

TEST_F(MetricsLogTest, ReopenedKeepsTheStepsThatAreDone) {
  write_atomically(path_, "{\"step\":20}\n{\"step\":40}\n{\"step\":60}\n");
  const MetricsLog log(path_, {.step = 40});
  EXPECT_EQ(read_text(path_), "{\"step\":20}\n{\"step\":40}\n");
}

TEST_F(MetricsLogTest, ReopenedBeforeAnEvaluationForgetsTheEpoch) {
  const std::string first = R"({"kind":"epoch","step":20,"epoch":1})",
                    second = R"({"kind":"epoch","step":40,"epoch":2})";
  const std::string step = R"({"kind":"step","step":40,"epoch":2})";
  write_atomically(path_, first + "\n" + step + "\n" + second + "\n");
  { const MetricsLog log(path_, {.epoch = 2, .step_in_epoch = 0, .step = 40}); }
  EXPECT_EQ(read_text(path_), first + "\n" + step + "\n" + second + "\n");
  const MetricsLog log(path_, {.epoch = 1, .step_in_epoch = 20, .step = 40});
  EXPECT_EQ(read_text(path_), first + "\n" + step + "\n") << "it is evaluated and recorded again";
}

TEST_F(MetricsLogTest, ADamagedLineTakesNoOtherWithIt) {
  write_atomically(path_, "{\"step\":20}\n{\"step\":30,\"test_loss\":nan}\nodd\n{\"step\":40}\n{\"step\":4");
  const MetricsLog log(path_, {.step = 100});
  EXPECT_EQ(read_text(path_), "{\"step\":20}\n{\"step\":40}\n");
}

}  // namespace
}  // namespace weft::run
