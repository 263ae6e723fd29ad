// Line charts as data, and the pictures that they become: SVG, PNG, or text for a terminal.
#pragma once

#include <string>
#include <vector>

namespace weft::plot {

struct Series {
  std::string name;          // in the legend; series of one name and group share an entry
  std::vector<double> x, y;  // as many of each; points that are no finite numbers break the line
  int group = 0;             // series of a group share a colour
  bool dashed = false;
  bool faint = false;  // a noisy curve behind a smooth one; not in the legend
};

struct Panel {
  std::string title, x_label, y_label;
  std::vector<Series> series;
};

/// Panels stand side by side.
struct Figure {
  std::vector<Panel> panels;
};

/// Ends of an axis and the marks between, at 1, 2 or 5 times a power of ten
/// (Heckbert 1990, "Nice numbers for graph labels", Graphics Gems).
struct Axis {
  double low = 0, high = 1, step = 1;
  int decimals = 0;  // that its labels need
};
Axis make_axis(double low, double high, int marks);  // about so many
std::vector<double> marks_of(const Axis& axis);
std::string label_of(const Axis& axis, double mark);

/// Exponential moving average, corrected for its start (Kingma and Ba 2015, section 3); `weight` in [0, 1) of the past.
std::vector<double> smooth(const std::vector<double>& values, double weight);

/// A whole SVG document.
std::string draw_svg(const Figure& figure);
/// The bytes of a PNG file.
std::string draw_png(const Figure& figure);
/// Lines of ASCII, each ending in a newline: one chart of `columns` x `rows` characters and a legend of the marks.
std::string draw_text(const Panel& panel, int columns, int rows);

}  // namespace weft::plot
