#include "weft/predict/prediction.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/error_of.h"

namespace weft::predict {
namespace {

Prediction sample() {
  {
    Prediction prediction{.model = "m",
                          .data = "d",
                          .device = "here",
                          .strategy = {.ranks = 4, .ranks_per_host = 2},
                          .times_from = "tests",
                          .exchange_from = "links",
                          .stages = {},
                          .memory = {1, 2, 3, 4, 5, "node"},
                          .traffic = {{"between hosts", 1e6, 0}},
                          .item = "images",
                          .items_per_sample = 1,
                          .epochs = 2,
                          .evaluation_seconds = {1, 2, 3}};
    for (const double seconds : {0.1, 0.2}) {
      StagePrediction stage{.first_step = prediction.steps(),
                            .steps = 100,
                            .batch = 32,
                            .accumulate = 2,
                            .image_height = 0,
                            .time = {},
                            .loading_seconds = 0.01};
      stage.time.seconds = {seconds, 2 * seconds, 0.01, 0.02, 0};
      stage.time.spread = 0.1;
      stage.time.exchanged["tensor"] = {.reduced = 1, .gathered = 2, .scattered = 3, .dealt = 4, .sent = 5};
      prediction.stages.push_back(stage);
    }
    prediction.energy = Energy{{1, 2, 3}, 400};
    prediction.cost = Cost{{4, 5, 6}, 2.5, "EUR"};
    prediction.to_target = TimeToTarget{"test_accuracy", 0.9, {0.3, 0.4, 0.5}, {10, 20, 30}, 5, 4};
    return prediction;
  }
}

TEST(Prediction, WhatIsWrittenIsRead) {
  const Prediction prediction = sample();
  const auto json = to_json(prediction);
  const Prediction read = prediction_from(nlohmann::json::parse(json.dump()), "prediction.json");
  EXPECT_EQ(to_json(read).dump(), json.dump());
}

TEST(Prediction, LoadingThatIsNotKnownIsWrittenAndSaidSo) {
  Prediction prediction = sample();
  for (StagePrediction& stage : prediction.stages) stage.loading_seconds.reset();
  const Prediction read = prediction_from(nlohmann::json::parse(to_json(prediction).dump()), "prediction.json");
  EXPECT_EQ(read.stages.front().loading_seconds, std::nullopt);
  EXPECT_NE(describe(read).find("not known"), std::string::npos) << describe(read);
}

TEST(Prediction, AFileThatIsNoneIsNamed) {
  const std::string message = test::error_of(
      [] {
        prediction_from(nlohmann::json{{"model", "m"}}, "r/prediction.json");
      },
      ErrorKind::data);
  EXPECT_NE(message.find("'r/prediction.json'"), std::string::npos) << message;
}

TEST(Prediction, TheRunIsItsStagesAndEvaluations) {
  const Prediction prediction = sample();
  EXPECT_EQ(prediction.steps(), 200);
  // Steps of 0.3 + 0.03 + 0.01 and of 0.6 + 0.03 + 0.01 seconds.
  EXPECT_NEAR(prediction.step().expected, (0.34 + 0.64) / 2, 1e-9);
  EXPECT_NEAR(prediction.run_seconds().expected, 100 * (0.34 + 0.64) + 2, 1e-9);
  EXPECT_NEAR(prediction.samples_per_second().expected, 200 * 64 / 98.0, 1e-9);
  EXPECT_EQ(prediction.longest().first_step, 100);
}

TEST(Prediction, NeverGivesANumberWithoutARange) {
  const Prediction prediction = sample();
  for (const Interval& interval :
       {prediction.step(), prediction.run_seconds(), prediction.samples_per_second(), prediction.stages[0].step()}) {
    EXPECT_LT(interval.low, interval.expected);
    EXPECT_LT(interval.expected, interval.high);
  }
}

TEST(Interval, OfALogarithmThatIsNormalHoldsEightyOfAHundred) {
  const Interval interval = interval_of(100, 0.1);
  EXPECT_NEAR(interval.low, 100 / std::exp(0.12815), 1e-2);
  EXPECT_NEAR(interval.high, 100 * std::exp(0.12815), 1e-2);
  const Interval both = product(interval, interval_of(2, 0.1));
  EXPECT_NEAR(both.expected, 200, 1e-9);
  EXPECT_NEAR(both.high / both.expected, std::exp(kNormal80 * 0.1 * std::sqrt(2.0)), 1e-6);
}

TEST(Strategy, IsKeptByTheKeysOfTheRecipe) {
  spec::RunSpec spec;
  spec.model.name = "lenet5";
  spec::resolve(spec);
  Strategy strategy = strategy_of(spec, 4, 2);
  strategy.zero = 3;
  strategy.compression = "bf16";
  strategy.memory_limit = "2GB";
  apply(strategy, spec);
  EXPECT_EQ(strategy_of(spec, 4, 2), strategy);
  EXPECT_EQ(strategy_from(nlohmann::json::parse(to_json(strategy).dump())), strategy);
}

}  // namespace
}  // namespace weft::predict
