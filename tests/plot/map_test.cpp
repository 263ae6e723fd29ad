#include "weft/plot/map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

Map one_box() {
  Map map;
  map.title = "memory";
  map.x_label = "steps";
  map.groups = {"activations"};
  map.panels = {{"arena", {{0, {0, 1, 2}, {0, 0}, {5, 9}}}, {{0, 0, 2, 0, 10, "conv<1>", "conv<1>: 10 B"}}}};
  map.mark = 1;
  map.mark_label = "peak";
  map.lines = {"at the peak:"};
  map.label_of_y = [](double y) { return std::to_string(static_cast<int>(y)) + " B"; };
  return map;
}

TEST(DrawMap, NamesBoxesPanelsAndThePeak) {
  const std::string svg = draw_svg(one_box());
  for (const char* text : {"<title>conv&lt;1&gt;: 10 B</title>", ">conv&lt;1&gt;</text>", ">arena</text>",
                           ">activations</text>", ">peak</text>", ">at the peak:</text>", "10 B", "<polygon"})
    EXPECT_THAT(svg, HasSubstr(text));
}

TEST(DrawMap, BoxesThatAreTooSmallHaveNoLabelButAHint) {
  Map map = one_box();
  map.panels[0].boxes[0].top = 0.01;
  const std::string svg = draw_svg(map);
  EXPECT_THAT(svg, HasSubstr("<title>conv&lt;1&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr(">conv&lt;1&gt;</text>")));
}

TEST(DrawMap, NothingIsAnEmptyPicture) {
  Map map = one_box();
  map.panels.clear();
  map.mark = -1;
  EXPECT_THAT(draw_svg(map), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace weft::plot
