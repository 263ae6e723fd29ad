// Charts of sizes over time: stacked areas and boxes over one axis, as SVG that shows the name of a box under the
// pointer.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace weft::plot {

/// Between two lines of steps: from x[i] to x[i + 1] it reaches from low[i] to high[i].
struct Area {
  int group = 0;
  std::vector<double> x;  // one more than there are steps
  std::vector<double> low, high;
};

struct Box {
  int group = 0;
  double left = 0, right = 0, bottom = 0, top = 0;
  std::string label;  // written into the box where it fits
  std::string hint;   // shown where the pointer rests
};

struct MapPanel {
  std::string title;
  std::vector<Area> areas;
  std::vector<Box> boxes;
};

/// Panels stand one above the other.
struct Map {
  std::string title, x_label;
  std::vector<std::string> groups;  // names, in the legend
  std::vector<MapPanel> panels;
  double mark = -1;  // where a line crosses all panels; negative: none
  std::string mark_label;
  std::vector<std::string> lines;                 // below the panels
  std::function<std::string(double)> label_of_y;  // "1.50 GB"
};

/// A whole SVG document.
std::string draw_svg(const Map& map);

}  // namespace weft::plot
