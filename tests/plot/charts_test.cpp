// Charts of many measured places, by the elements of their SVG.
#include "weft/plot/charts.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/error_of.h"

namespace weft::plot {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Charts, BarsHaveNamesAndValues) {
  const std::string svg =
      draw_svg(Bars{.title = "t", .x_label = "share", .bars = {{"rate", 0.75, 0}, {"a < b", 0.25, 1}}});
  EXPECT_NE(svg.find(">rate<"), std::string::npos);
  EXPECT_NE(svg.find(">0.750<"), std::string::npos);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_EQ(count_of(svg, "<rect"), 3u) << "the ground and two bars";
}

TEST(Charts, ATimelineHasABoxForEachTaskAndItsKindsBelow) {
  const std::string svg = draw_svg(Timeline{
      .title = "t",
      .x_label = "ms",
      .rows = {"rank 0", "idle", "rank 1"},
      .boxes = {
          {0, 0, 4, "forward 0", "forward"}, {2, 4, 8, "forward 0", "forward"}, {2, 8, 10, "backward 0", "backward"}}});
  EXPECT_EQ(count_of(svg, "<rect"), 1u + 3 + 2) << "the ground, boxes and kinds";
  EXPECT_EQ(count_of(svg, "<title>forward 0</title>"), 2u);
  EXPECT_NE(svg.find(">rank 1<"), std::string::npos);
  EXPECT_EQ(svg.find(">idle<"), std::string::npos);
  EXPECT_NE(svg.find(">backward<"), std::string::npos);
}

TEST(Charts, BoxesOfATimelineThatNobodyCouldSeeAreOne) {
  Timeline timeline{.title = "", .x_label = "", .rows = {"rank 0"}, .boxes = {}};
  for (int at = 0; at < 10'000; ++at)
    timeline.boxes.push_back({0, static_cast<double>(at), at + 1.0, "node", at < 5000 ? "forward" : "backward"});
  EXPECT_LE(count_of(draw_svg(timeline), "<rect"), 1u + 2 + 2);
  timeline.boxes.clear();
  EXPECT_NE(test::error_of([&] { draw_svg(timeline); }).find("nothing happens"), std::string::npos);
}

TEST(Charts, ALinePassesAnAxisByWhereItHasNoCoordinate) {
  ParallelAxes chart{.title = "", .axes = {{"x", {{0, "low"}, {1, "high"}}}, {"y", {}}, {"z", {}}}, .lines = {}};
  chart.lines.push_back({{0.5, std::numeric_limits<double>::quiet_NaN(), 1}, 0, "trial 7"});
  const std::string svg = draw_svg(chart);
  const size_t begin = svg.find("points=\"") + 8;
  EXPECT_EQ(count_of(svg.substr(begin, svg.find('"', begin) - begin), ","), 2u);
  EXPECT_NE(svg.find("<title>trial 7</title>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Charts, TheBestLineIsDrawnLast) {
  const std::string svg = draw_svg(
      ParallelAxes{.title = "", .axes = {{"x", {}}, {"y", {}}}, .lines = {{{0, 1}, 0, "best"}, {{1, 0}, 1, "worst"}}});
  EXPECT_LT(svg.find(">worst<"), svg.find(">best<"));
}

TEST(Charts, AMapHasACellForEachValueAndLinesBetweenItsLevels) {
  const ValueMap map{.title = "",
                     .x_label = "x",
                     .y_label = "y",
                     .x_marks = {},
                     .y_marks = {},
                     .columns = 2,
                     .rows = 2,
                     .values = {0, 10, 0, 10},
                     .places = {{0.5, 0.5}}};
  const std::string svg = draw_svg(map);
  EXPECT_EQ(count_of(svg, "<rect"), 1u + 4 + 10) << "the ground, cells, and the scale";
  EXPECT_EQ(count_of(svg, "<circle"), 1u);
  const size_t begin = svg.find("<path d=\"");
  EXPECT_EQ(count_of(svg.substr(begin, svg.find("stroke", begin) - begin), "M"), 9u)
      << "one upright line for each level";
}

TEST(Charts, AMapWithoutValuesIsRefused) {
  EXPECT_NE(test::error_of([] { draw_svg(ValueMap{}); }, ErrorKind::usage).find("no values"), std::string::npos);
}

}  // namespace
}  // namespace weft::plot
