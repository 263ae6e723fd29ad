#include "weft/plot/view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft::plot {
namespace {

TEST(UsualRange, LeavesOutOneValueThatIsFarFromTheRest) {
  EXPECT_EQ(usual_range({2, 1.5, 1e6, 1, 0.5}), (std::pair<double, double>(0.5, 2)));
  EXPECT_EQ(usual_range({2, 1.5, -1e6, 1, 0.5}), (std::pair<double, double>(0.5, 2)));
}

TEST(UsualRange, KeepsTheSteepBeginningOfACurve) {
  EXPECT_EQ(usual_range({2.3, 0.5, 0.3}).second, 2.3);
  std::vector<double> curve;
  for (int epoch = 0; epoch < 300; ++epoch) curve.push_back(0.1 + 2.2 * std::exp(-epoch / 20.0));
  EXPECT_EQ(usual_range(curve).second, curve.front());
}

TEST(UsualRange, KeepsWhatIsMoreThanATwentiethOfTheValues) {
  std::vector<double> values(40, 1.0);
  values[3] = values[4] = 1e6;
  EXPECT_EQ(usual_range(values).second, 1);
  values[5] = 1e6;
  EXPECT_EQ(usual_range(values).second, 1e6);
}

TEST(UsualRange, PassesOverWhatIsNoNumber) {
  EXPECT_EQ(usual_range({1, std::nan(""), 2, std::numeric_limits<double>::infinity()}),
            (std::pair<double, double>(1, 2)));
}

TEST(View, SaysHowFarPointsLieBeyondTheAxis) {
  Panel panel{.title = "loss", .x_label = "epoch", .series = {{.name = "a", .x = {1, 2, 3, 4}, .y = {1, 0.5, 7e4, 2}}}};
  const View view = view_of(panel, 5, 5);
  EXPECT_LE(view.y.high, 3);
  EXPECT_EQ(view.above, 7e4);
  EXPECT_FALSE(view.below);
}

TEST(View, ACurveThatLiesHighAsAWholeIsShown) {
  Panel panel{
      .title = "loss",
      .x_label = "epoch",
      .series = {{.name = "a", .x = {1, 2, 3}, .y = {1, 2, 1}}, {.name = "b", .x = {1, 2, 3}, .y = {900, 950, 900}}}};
  EXPECT_GE(view_of(panel, 5, 5).y.high, 950);
}

TEST(View, NoShareIsAboveAllOfIt) {
  Panel panel{.title = "accuracy", .x_label = "epoch", .series = {{.name = "a", .x = {1, 2}, .y = {1, 1}}}};
  panel.is_share = true;
  EXPECT_DOUBLE_EQ(view_of(panel, 5, 5).y.high, 1);
}

TEST(Legend, NamesACurveOfTwoPanelsOnce) {
  Panel panel{.title = "loss", .x_label = "epoch", .series = {{.name = "a", .x = {1}, .y = {1}}}};
  Panel other = panel;
  other.series.push_back({.name = "a", .x = {1}, .y = {1}, .group = 1});
  other.series.push_back({.name = "noise", .x = {1}, .y = {1}, .faint = true});
  const std::vector<Panel> panels{panel, other};
  const std::vector<const Series*> entries = legend_of(panels);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1]->group, 1);
}

}  // namespace
}  // namespace weft::plot
