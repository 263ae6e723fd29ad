// What the drawn charts hold: the picture itself is for eyes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/files_for_tests.h"
#include "weft/data/pictures/image.h"
#include "weft/plot/figure.h"

namespace weft::plot {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Panel falling_line() { return {"loss", "epoch", "loss", {{.name = "train", .x = {0, 1, 2}, .y = {2, 1, 0}}}}; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(DrawText, PutsHighValuesOnTop) {
  const std::vector<std::string> lines = lines_of(draw_text(falling_line(), 30, 5));
  // title, 5 rows, axis, labels, legend
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_EQ(lines[0], "loss");
  EXPECT_THAT(lines[1], HasSubstr("2.0 |*"));
  EXPECT_EQ(lines[5].back(), '*');
  EXPECT_EQ(lines[5].size(), 30u);
  EXPECT_EQ(lines[8], "  * train");
}

TEST(DrawText, GivesEachSeriesItsMark) {
  Panel panel = falling_line();
  panel.series.push_back({.name = "test", .x = {0, 2}, .y = {0, 0}});
  const std::string text = draw_text(panel, 40, 8);
  EXPECT_THAT(text, HasSubstr("  * train\n  o test\n"));
}

TEST(DrawText, LeavesAGapWhereNothingWasMeasured) {
  Panel panel = falling_line();
  panel.series[0].y[1] = std::nan("");
  const std::string text = draw_text(panel, 40, 7);
  EXPECT_EQ(std::count(text.begin(), text.end(), '*'), 3) << text;  // two points and the legend
}

TEST(DrawText, SaysWhereThereIsNothingToDraw) {
  EXPECT_EQ(draw_text({"loss", "epoch", "loss", {}}, 40, 7), "loss: nothing measured yet\n");
}

TEST(DrawSvg, IsAWholeDocumentAsWideAsItsPanels) {
  const std::string one = draw_svg({{falling_line()}}), two = draw_svg({{falling_line(), falling_line()}});
  EXPECT_THAT(one, HasSubstr("<svg"));
  EXPECT_THAT(one, HasSubstr("</svg>"));
  EXPECT_THAT(one, HasSubstr("520"));
  EXPECT_THAT(two, HasSubstr("1040"));
}

using DrawPng = FilesTest;

TEST_F(DrawPng, HasTheColourOfTheSeries) {
  const std::string png = draw_png({{falling_line()}});
  const data::Image image = data::read_image(write("chart.png", Bytes(png.begin(), png.end())));
  EXPECT_EQ(image.width, 1040);
  EXPECT_EQ(image.height, 680);
  const int64_t plane = image.width * image.height;
  int64_t blue = 0;
  for (int64_t at = 0; at < plane; ++at) {
    const auto channel = [&](int64_t index) { return image.pixels[static_cast<size_t>(index * plane + at)]; };
    if (channel(0) < 10 && channel(1) > 100 && channel(1) < 130 && channel(2) > 165 && channel(2) < 190) ++blue;
  }
  EXPECT_GT(blue, 500);
}

}  // namespace
}  // namespace weft::plot
