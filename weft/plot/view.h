// What part of a panel is shown: all of its points, but for a few that lie so far out that they would flatten the rest.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/plot/figure.h"

namespace weft::plot {

struct View {
  bool empty = true;  // there is no point
  Axis x, y;
  std::optional<double> above, below;  // the value furthest beyond each end of the vertical axis
};

bool is_point(const Series& series, size_t index);

/// Axes with about so many marks.
View view_of(const Panel& panel, int x_marks, int y_marks);

/// Of a mark or of a value, as the panel shows it.
std::string y_label(const Panel& panel, const Axis& axis, double mark);
std::string value_label(const Panel& panel, double value);

/// The series that the legend names, each kind once.
std::vector<const Series*> legend_of(const std::vector<Panel>& panels);

}  // namespace weft::plot
