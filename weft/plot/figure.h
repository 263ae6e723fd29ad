// Line charts as data, and the pictures that they become: SVG, PNG, or text for a terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft::plot {

enum class Line { solid, dashed, dotted, none };  // none: points alone

struct Series {
  std::string name;          // in the legend; series of one name, group and line share an entry
  std::vector<double> x, y;  // as many of each; points that are no finite numbers break the line
  int group = 0;             // series of a group share a colour, in all panels
  Line line = Line::solid;
  bool faint = false;  // a noisy curve behind a smooth one; not in the legend
};

struct Panel {
  std::string title, x_label;
  std::vector<Series> series;
  bool whole_x = false;   // marks below stand at whole numbers: epochs, steps
  bool is_share = false;  // values are shares, labels are in percent
};

/// Panels stand side by side, with one legend for all of them below.
struct Figure {
  std::string title;
  std::vector<Panel> panels;
};

/// Ends of an axis and the marks between, at 1, 2 or 5 times a power of ten
/// (Heckbert 1990, "Nice numbers for graph labels", Graphics Gems).
struct Axis {
  double low = 0, high = 1, step = 1;
  int decimals = 0;  // that its labels need
};
/// With about so many marks, which are at least `least_step` apart.
Axis make_axis(double low, double high, int marks, double least_step = 0);
std::vector<double> marks_of(const Axis& axis);
std::string label_of(const Axis& axis, double mark);
/// "20 %" of the mark 0.2.
std::string percent_label_of(const Axis& axis, double mark);

/// The range that a vertical axis shows: that of all finite values, but for at most one in twenty (and one in any case)
/// that lie several times its height away.
std::pair<double, double> usual_range(std::vector<double> values);

/// Exponential moving average, corrected for its start (Kingma and Ba 2015, section 3); `weight` in [0, 1) of the past.
std::vector<double> smooth(const std::vector<double>& values, double weight);

/// A whole SVG document.
std::string draw_svg(const Figure& figure);
/// The bytes of a PNG file.
std::string draw_png(const Figure& figure);
/// Whether this weft can: without cairo the two above are Error(usage).
bool draws_pictures();
/// Lines of ASCII, each ending in a newline: one chart of `columns` x `rows` characters and a legend of the marks.
std::string draw_text(const Panel& panel, int columns, int rows);

}  // namespace weft::plot
