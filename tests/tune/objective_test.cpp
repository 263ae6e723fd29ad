// What a search reads from run directories and plans.
#include "weft/tune/study/objective.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;
using test::error_of;

std::string message_of(const std::string& text) {
  return error_of([&] { parse_objectives(text, standard_entries()); }, ErrorKind::usage);
}

TEST(Objective, MetricsSayWhatIsBetter) {
  const std::vector<Objective> objectives =
      parse_objectives("validation_accuracy,validation_loss,size", standard_entries());
  ASSERT_EQ(objectives.size(), 3u);
  EXPECT_TRUE(objectives[0].higher_is_better);
  EXPECT_FALSE(objectives[1].higher_is_better);
  EXPECT_FALSE(objectives[2].higher_is_better);
  EXPECT_EQ(objectives[0].loss(0.75), -0.75);
  EXPECT_FALSE(objectives[2].is_metric());
}

TEST(Objective, NamesMistakes) {
  EXPECT_NE(message_of("validation_acuracy").find("did you mean 'validation_accuracy'?"), std::string::npos);
  EXPECT_NE(message_of("validation_loss,validation_loss").find("stands there twice"), std::string::npos);
  EXPECT_NE(message_of("size").find("the first objective is a metric"), std::string::npos);
  EXPECT_NE(message_of("test_accuracy").find("measured once, for the winner; search by validation_accuracy"),
            std::string::npos);
}

TEST(Constraint, ReadsBounds) {
  const Constraint memory = parse_constraint("memory <= 800MB"), parameters = parse_constraint("parameters<=100k");
  EXPECT_EQ(memory.bound, 8e8);
  EXPECT_EQ(parameters.bound, 1e5);
  EXPECT_TRUE(parameters.holds({.parameters = 100'000}));
  EXPECT_FALSE(parameters.holds({.parameters = 100'001}));
  EXPECT_TRUE(parse_constraint("parameters >= 10").holds({.parameters = 11}));
}

TEST(Constraint, NamesMistakes) {
  const auto message = [](const char* text) { return error_of([&] { parse_constraint(text); }, ErrorKind::usage); };
  EXPECT_NE(message("memory < 1GB").find("wants NAME <= BOUND"), std::string::npos);
  EXPECT_NE(message("memry <= 1GB").find("did you mean 'memory'?"), std::string::npos);
  EXPECT_NE(message("memory <= lots").find("is no amount of memory"), std::string::npos);
  EXPECT_NE(message("parameters <= 1X").find("is no number"), std::string::npos);
}

class MeasuredRun : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(run_ / "metrics.jsonl")
        << R"({"kind":"step","step":20,"epoch":1,"loss":2.0})"
           "\n"
        << R"({"kind":"epoch","step":40,"epoch":1,"validation_accuracy":0.5,"validation_loss":1.0,"train_seconds":1.5})"
           "\n"
        << R"({"kind":"epoch","step":80,"epoch":2,"validation_accuracy":0.75,"validation_loss":0.9,"train_seconds":3.0})"
           "\n"
        << R"({"kind":"epoch","step":120,"epoch":3,"validation_accuracy":0.7,"validation_loss":0.8,"train_seconds":4.5})"
           "\n"
        << R"({"kind":"epoch","step":160,"epoch":4,"validation_accuracy":null,"validation_loss":null,"train_sec)";
  }
  run::MetricsHistory history() const { return run::read_metrics(run_ / "metrics.jsonl"); }
  const TemporaryFolder folder_;
  const fs::path run_ = folder_.path();
};

TEST_F(MeasuredRun, CurvesHoldWhatIsFinite) {
  const Measured measured = measured_curve(history(), "validation_accuracy");
  EXPECT_EQ(measured.curve, (std::vector<std::pair<int64_t, double>>{{1, 0.5}, {2, 0.75}, {3, 0.7}}));
  EXPECT_FALSE(measured_curve(history(), "validation_f1").is_known);
}

TEST_F(MeasuredRun, AllObjectivesAreOfTheBestEvaluation) {
  const auto objectives = parse_objectives("validation_accuracy,validation_loss,parameters,memory,size,latency,seconds",
                                           standard_entries());
  EXPECT_EQ(
      measure(history(), objectives, {.parameters = 7, .memory = 9}, Deployed{.bytes = 123, .latency_seconds = 0.5}),
      (std::vector<double>{0.75, 0.9, 7, 9, 123, 0.5, 4.5}));
}

TEST_F(MeasuredRun, WhatACopyHasFromItsOriginDoesNotCount) {
  const auto objectives = parse_objectives("validation_accuracy,validation_loss", standard_entries());
  EXPECT_EQ(measured_curve(history(), "validation_accuracy", 2).curve,
            (std::vector<std::pair<int64_t, double>>{{3, 0.7}}));
  EXPECT_EQ(measure(history(), objectives, {}, {}, 2), (std::vector<double>{0.7, 0.8}));
  EXPECT_EQ(measure(history(), objectives, {}, {}, 3), std::nullopt);
  EXPECT_EQ(measured_seconds(history(), 2), 1.5);
}

TEST_F(MeasuredRun, WhatIsToBeDeployedHasNoValuesBefore) {
  EXPECT_EQ(measure(history(), parse_objectives("validation_accuracy,size", standard_entries()), {}), std::nullopt);
}

TEST_F(MeasuredRun, ARunThatMeasuredNothingHasNoValues) {
  EXPECT_EQ(measure(history(), parse_objectives("validation_rmse", standard_entries()), {}), std::nullopt);
}

}  // namespace
}  // namespace weft::tune
