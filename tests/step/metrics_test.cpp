// Which metrics a run measures, and which of them decides.
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/step/metrics/entries.h"

namespace weft::step {
namespace {

std::vector<std::string> names(const std::string& of_recipe, const std::string& task) {
  return names_of(metrics_of(standard_entries(), {.names = of_recipe}, task));
}

TEST(MetricsOf, TheTaskHasItsOwnAndARecipeAddsOthers) {
  EXPECT_EQ(names("auto", "segmentation"), (std::vector<std::string>{"accuracy", "mean_iou"}));
  EXPECT_EQ(names("auto, perplexity, accuracy", "classification"),
            (std::vector<std::string>{"accuracy", "perplexity"}));
}

TEST(MetricsOf, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    names("acuracy", "classification");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "there is no metric 'acuracy'; did you mean 'accuracy'?");
  }
}

TEST(ScoreOf, IsHigherWhereTheMetricIsBetter) {
  Entries entries = standard_entries();
  entries.add_task({.name = "forecast", .summary = "", .metrics = {"rmse"}, .decided_by = "rmse"});
  EXPECT_EQ(score_of(entries, "forecast", {{"rmse", 2.0}}), -2);
  EXPECT_EQ(score_of(entries, "classification", {{"accuracy", 0.5}}), 0.5);
  EXPECT_EQ(score_of(entries, "regression", {{"rmse", 2.0}}), std::nullopt) << "the loss decides";
  EXPECT_EQ(score_of(entries, "classification", {{"accuracy", std::nullopt}}), std::nullopt);
}

TEST(MeanIou, IsTheMeanOverTheClassesThatOccur) {
  const MetricEntry metric = mean_iou_entry();
  const data::DatasetInfo info{.name = "masks", .sample_shape = {3, 4, 4}, .classes = 3};
  const spec::MetricsSpec options;
  const MetricTotals totals{4, 10, 0.5, info, options};
  const std::vector<double> sums = {3, 4, 1, 2, 0, 0};  // of both and of either: 3/4, 1/2, a class that does not occur
  EXPECT_EQ(metric.value(sums, totals), 0.625);
  EXPECT_EQ(metric.value(std::vector<double>(6), totals), std::nullopt);
}

TEST(R2, OfValuesThatAreAllAlikeIsUndefined) {
  const data::DatasetInfo info{.name = "rows", .sample_shape = {2}};
  const spec::MetricsSpec options;
  const MetricTotals totals{4, 4, 0, info, options};
  EXPECT_EQ(r2_entry().value(std::vector<double>{2, 4, 4}, totals), std::nullopt) << "four times 1";
  EXPECT_DOUBLE_EQ(*r2_entry().value(std::vector<double>{1, 6, 14}, totals), 1 - 1 / (14 - 36 / 4.0));
}

}  // namespace
}  // namespace weft::step
