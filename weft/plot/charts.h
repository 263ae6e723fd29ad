// Charts of many places: bars, axes beside each other, a map of values over two quantities, and what happens in rows of
// time, as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft::plot {

/// A place on an axis, 0 at its lower end and 1 at its upper one, and what stands there.
using AxisMarks = std::vector<std::pair<double, std::string>>;

struct Bars {
  std::string title, x_label;
  struct Bar {
    std::string name;
    double value = 0;  // 0 or more
    int group = 0;     // bars of a group share a colour
  };
  std::vector<Bar> bars;  // from the top
};

/// A line for each measured place, across an axis for each of its coordinates.
struct ParallelAxes {
  std::string title;
  struct Axis {
    std::string name;
    AxisMarks marks;
  };
  std::vector<Axis> axes;
  struct Line {
    std::vector<double> at;  // in [0, 1] of each axis; NaN: it has none there, and passes it by
    double shade = 0;        // from 0, which is drawn last and dark, to 1
    std::string hint;        // shown where the pointer rests
  };
  std::vector<Line> lines;
};

/// Values over two quantities, in bands of ten levels with lines between them.
struct ValueMap {
  std::string title, x_label, y_label;
  AxisMarks x_marks, y_marks;
  size_t columns = 0, rows = 0;
  std::vector<double> values;                     // element row * columns + column; the first row is the lowest
  std::vector<std::pair<double, double>> places;  // measured ones, in [0, 1] of both axes
  bool low_is_dark = true;
};

/// What several rows do over time.
struct Timeline {
  std::string title, x_label;
  std::vector<std::string> rows;  // from the top
  struct Box {
    size_t row = 0;
    double begin = 0, end = 0;
    std::string name, kind;  // boxes of a kind share a colour, and the kinds are named below
  };
  std::vector<Box> boxes;
};

/// Whole SVG documents.
std::string draw_svg(const Bars& bars);
/// Leaves out rows without boxes. Boxes of a kind that would be narrower than a pixel are drawn as one. Error(usage)
/// where there are none.
std::string draw_svg(const Timeline& timeline);
std::string draw_svg(const ParallelAxes& axes);
/// Error(usage) without values.
std::string draw_svg(const ValueMap& map);

}  // namespace weft::plot
