#include "weft/report/run_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "weft/base/error.h"

namespace weft::report {
namespace {

using testing::ElementsAre;

/// Two epochs of ten steps.
RunCurves two_epochs(const std::string& name) {
  RunCurves run;
  run.name = name;
  const std::vector<int64_t> ends{10, 20};
  run.history.by_epoch = {{"epoch", {ends, {1, 2}}},
                          {"train_loss", {ends, {0.9, 0.5}}},
                          {"test_loss", {ends, {0.8, 0.6}}},
                          {"train_accuracy", {ends, {0.7, 0.8}}},
                          {"test_accuracy", {ends, {0.75, 0.85}}}};
  run.history.by_step = {{"loss", {{1, 10, 20}, {1.1, 0.8, 0.4}}}, {"learning_rate", {{1, 10, 20}, {0.1, 0.1, 0.1}}}};
  return run;
}

const plot::Series& series_of(const plot::Panel& panel, const std::string& name) {
  const auto found = std::find_if(panel.series.begin(), panel.series.end(),
                                  [&](const plot::Series& one) { return one.name == name && !one.faint; });
  EXPECT_NE(found, panel.series.end()) << name;
  return *found;
}

class RunCurvesTest : public ::testing::Test {
 protected:
  plot::Figure draw(const std::vector<RunCurves>& runs, CurveOptions options = {}) const {
    return draw_curves(library_, runs, std::move(options));
  }
  Library library_ = standard_library();
};

TEST_F(RunCurvesTest, APartOfOneRunHasOneColourInBothPanels) {
  const plot::Figure figure = draw({two_epochs("first")});
  ASSERT_EQ(figure.panels.size(), 2u);
  for (const char* part : {"train", "test"})
    EXPECT_EQ(series_of(figure.panels[0], part).group, series_of(figure.panels[1], part).group) << part;
  EXPECT_NE(series_of(figure.panels[0], "train").group, series_of(figure.panels[0], "test").group);
  EXPECT_EQ(figure.title, "first");
}

TEST_F(RunCurvesTest, ARunOfSeveralKeepsItsColourInAllPanels) {
  // The second one alone has an accuracy, and still is the second.
  RunCurves first = two_epochs("first");
  first.history.by_epoch.erase("train_accuracy");
  first.history.by_epoch.erase("test_accuracy");
  const plot::Figure figure = draw({first, two_epochs("second")});
  EXPECT_EQ(series_of(figure.panels[0], "second: test").group, 1);
  EXPECT_EQ(series_of(figure.panels[1], "second: test").group, 1);
  EXPECT_EQ(series_of(figure.panels[0], "first: test").group, 0);
}

TEST_F(RunCurvesTest, PartsOfSeveralRunsDifferByTheirLines) {
  RunCurves run = two_epochs("a");
  run.history.by_epoch["validation_loss"] = {{10, 20}, {0.7, 0.65}};
  const plot::Panel panel = draw({run, two_epochs("b")}).panels[0];
  EXPECT_NE(series_of(panel, "a: train").line, series_of(panel, "a: test").line);
  EXPECT_NE(series_of(panel, "a: validation").line, series_of(panel, "a: test").line);
  EXPECT_NE(series_of(panel, "a: validation").line, series_of(panel, "a: train").line);
}

TEST_F(RunCurvesTest, AccuraciesAreSharesAndLossesAreNot) {
  const plot::Figure figure = draw({two_epochs("a")});
  EXPECT_FALSE(figure.panels[0].is_share);
  EXPECT_TRUE(figure.panels[1].is_share);
  EXPECT_TRUE(draw({two_epochs("a")}, {.metrics = {"test_accuracy"}}).panels[0].is_share);
}

TEST_F(RunCurvesTest, EpochsAndStepsHaveWholeMarks) {
  EXPECT_TRUE(draw({two_epochs("a")}).panels[0].whole_x);
  EXPECT_TRUE(draw({two_epochs("a")}, {.x = "step"}).panels[0].whole_x);
}

TEST_F(RunCurvesTest, EvaluationsWithinEpochsLieBetweenThoseOfTheirEnds) {
  RunCurves run = two_epochs("a");
  run.history.by_epoch["validation_loss"] = {{10, 20}, {0.7, 0.6}};
  run.history.by_validation["validation_loss"] = {{5, 10, 15}, {0.9, 0.7, 0.65}};
  const plot::Series series = series_of(draw({run}).panels[0], "validation");
  EXPECT_THAT(series.x, ElementsAre(0.5, 1, 1.5, 2));
  EXPECT_THAT(series.y, ElementsAre(0.9, 0.7, 0.65, 0.6));
}

TEST_F(RunCurvesTest, OneWildStepDoesNotCarryTheSmoothCurveAway) {
  RunCurves run = two_epochs("a");
  run.history.by_step["loss"] = {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 0.9, 0.8, 1e9, 0.7, 0.7, 0.6, 0.6}};
  const plot::Figure figure = draw({run});
  for (const double value : series_of(figure.panels[0], "train, each step (smoothed)").y) EXPECT_LT(value, 1.01);
}

TEST_F(RunCurvesTest, AnUnknownMetricNamesThoseThatThereAre) {
  try {
    draw({two_epochs("a")}, {.metrics = {"speed"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no run has the metric 'speed'; they have learning_rate, loss, "));
  }
}

TEST(NameOfRun, IsTheLastPartOfThePath) {
  EXPECT_EQ(name_of_run("runs/first/"), "first");
  EXPECT_EQ(name_of_run("runs/\xff"), "\\xff");
  EXPECT_NE(name_of_run("."), ".");
}

}  // namespace
}  // namespace weft::report
