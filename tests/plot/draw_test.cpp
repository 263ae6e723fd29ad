// What the drawn charts hold: the picture itself is for eyes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "tests/support/files_for_tests.h"
#include "weft/data/pictures/image.h"
#include "weft/plot/figure.h"
#include "weft/plot/label.h"

namespace weft::plot {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Panel falling_line() {
  return {.title = "loss", .x_label = "epoch", .series = {{.name = "train", .x = {0, 1, 2}, .y = {2, 1, 0}}}};
}

/// With a value in the middle that is far from the others.
Panel with_spike() {
  Panel panel = falling_line();
  panel.series[0].x = {0, 1, 2, 3, 4, 5};
  panel.series[0].y = {2, 1.5, 1e6, 1, 0.75, 0.5};
  return panel;
}

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
  EXPECT_EQ(draw_text({.title = "loss", .x_label = "epoch", .series = {}}, 40, 7), "loss: nothing measured yet\n");
}

TEST(DrawText, MarksWhatLiesBeyondTheAxis) {
  const std::string text = draw_text(with_spike(), 40, 7);
  EXPECT_THAT(lines_of(text)[1], HasSubstr("2.0 |*"));
  EXPECT_THAT(lines_of(text)[1], HasSubstr("^"));
  EXPECT_THAT(text, HasSubstr("  ^ beyond the axis: up to 1e+06\n"));
}

TEST(DrawText, SharesAreInPercent) {
  Panel panel = falling_line();
  panel.series[0].y = {0.5, 0.75, 1};
  panel.is_share = true;
  const std::string text = draw_text(panel, 40, 7);
  EXPECT_THAT(text, HasSubstr("100 % |"));
  EXPECT_THAT(text, Not(HasSubstr("0.5")));
}

TEST(DrawSvg, IsAWholeDocumentAsWideAsItsPanels) {
  const std::string one = draw_svg({"", {falling_line()}}), two = draw_svg({"", {falling_line(), falling_line()}});
  EXPECT_THAT(one, HasSubstr("<svg"));
  EXPECT_THAT(one, HasSubstr("</svg>"));
  EXPECT_THAT(one, HasSubstr("520"));
  EXPECT_THAT(two, HasSubstr("1040"));
}

class DrawPng : public FilesTest {
 protected:
  data::Image draw(const Figure& figure) {
    const std::string png = draw_png(figure);
    return data::read_image(write("chart.png", Bytes(png.begin(), png.end())));
  }
};

/// Pixels of about this colour, within some rows.
int64_t count_pixels(const data::Image& image, std::array<int, 3> colour, int64_t first_row, int64_t last_row) {
  const int64_t plane = image.width * image.height;
  int64_t count = 0;
  for (int64_t at = first_row * image.width; at < last_row * image.width; ++at) {
    bool is_near = true;
    for (int64_t channel = 0; channel < 3; ++channel)
      is_near = is_near && std::abs(image.pixels[static_cast<size_t>(channel * plane + at)] -
                                    colour[static_cast<size_t>(channel)]) < 14;
    count += is_near ? 1 : 0;
  }
  return count;
}

constexpr std::array<int, 3> kBlue{0, 115, 179}, kOrange{214, 94, 0};
constexpr int64_t kPanelBottom = 680, kPlotTop = 68;  // in pixels

TEST_F(DrawPng, HasTheColourOfTheSeries) {
  const data::Image image = draw({"", {falling_line()}});
  EXPECT_EQ(image.width, 1040);
  EXPECT_EQ(image.height, 2 * (340 + 16 + 10)) << "with a line of the legend below the panel";
  EXPECT_GT(count_pixels(image, kBlue, 0, image.height), 500);
}

TEST_F(DrawPng, TheLegendStandsBelowThePanels) {
  Panel panel = falling_line();
  panel.series.push_back({.name = "nothing of it is in the panel", .x = {0}, .y = {std::nan("")}, .group = 1});
  const data::Image image = draw({"", {panel}});
  EXPECT_EQ(count_pixels(image, kOrange, 0, kPanelBottom), 0);
  EXPECT_GT(count_pixels(image, kOrange, kPanelBottom, image.height), 20);
}

TEST_F(DrawPng, ACurveInTwoPanelsHasOneEntry) {
  EXPECT_EQ(draw({"", {falling_line(), falling_line()}}).height, draw({"", {falling_line()}}).height);
}

TEST_F(DrawPng, ATitleStandsAbove) {
  const data::Image plain = draw({"", {falling_line()}}), titled = draw({"my run", {falling_line()}});
  EXPECT_GT(titled.height, plain.height);
  EXPECT_GT(count_pixels(titled, {26, 26, 26}, 0, titled.height - plain.height), 30);
}

TEST_F(DrawPng, AnOutlierLeavesTheCurveItsHeightAndAMarkAtTheEdge) {
  const data::Image image = draw({"", {with_spike()}});
  // The rest falls from 2 to 0.5 on an axis that ends there: blue in the lowest quarter of the panel, too.
  EXPECT_GT(count_pixels(image, kBlue, kPanelBottom - 88 - 120, kPanelBottom - 88), 40);
  EXPECT_GT(count_pixels(image, kBlue, kPlotTop, kPlotTop + 16), 60) << "an arrow";
}

TEST_F(DrawPng, ALongNameTakesOneColumnOfThePanels) {
  Panel panel = falling_line();
  panel.series.push_back({.name = "", .x = {0, 1}, .y = {0, 1}, .group = 1});
  for (int count = 0; count < 200; ++count) panel.series[1].name += "ü";
  const data::Image image = draw({panel.series[1].name, {panel, falling_line()}});
  EXPECT_EQ(image.width, 2080);
  EXPECT_EQ(image.height, 2 * (26 + 340 + 16 + 10)) << "one line for two names";
}

TEST(DrawLabel, HasInkInTheMiddleAndFitsLongNames) {
  const auto ink = [](const std::string& text, int first, int last) {
    const std::vector<uint8_t> pixels = draw_label(text, 80, 14);
    EXPECT_EQ(pixels.size(), 80u * 14u);
    int count = 0;
    for (int y = 0; y < 14; ++y)
      for (int x = first; x < last; ++x) count += pixels[static_cast<size_t>(y * 80 + x)] < 128 ? 1 : 0;
    return count;
  };
  EXPECT_GT(ink("cat", 20, 60), 15);
  EXPECT_EQ(ink("cat", 0, 20) + ink("cat", 60, 80), 0);
  EXPECT_GT(ink("a name that is much too long for its place", 60, 80), 5);
  EXPECT_NE(draw_label("the same beginning of all names: one", 80, 14),
            draw_label("the same beginning of all names: two", 80, 14))
      << "their ends are kept";
}

}  // namespace
}  // namespace weft::plot
