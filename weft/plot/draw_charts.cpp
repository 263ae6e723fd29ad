#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "weft/base/error.h"
#include "weft/plot/charts.h"
#include "weft/plot/figure.h"
#include "weft/plot/svg_parts.h"

namespace weft::plot {

namespace {

constexpr double kChartWidth = 860, kBarHeight = 18, kBarLeft = 310, kChartMargin = 60, kChartTop = 44;
constexpr double kAxesHeight = 320, kMapSide = 420, kMapLabels = 110, kScaleWidth = 18;
constexpr int kLevels = 10;
constexpr std::array<std::string_view, 4> kBarColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7"};

/// From dark blue to light yellow, as even for the colour-blind (after Nuñez, Anderton and Renslow 2018, "cividis").
std::string shade_colour(double shade) {
  constexpr std::array<std::array<double, 3>, 6> kAnchors{
      {{0, 34, 78}, {53, 69, 108}, {102, 105, 112}, {148, 142, 119}, {200, 184, 102}, {254, 232, 56}}};
  const double at = std::clamp(shade, 0.0, 1.0) * static_cast<double>(kAnchors.size() - 1);
  const size_t left = std::min(static_cast<size_t>(at), kAnchors.size() - 2);
  std::array<int, 3> channels{};
  for (size_t channel = 0; channel < 3; ++channel) {
    const double from = kAnchors[left][channel], to = kAnchors[left + 1][channel];
    channels[channel] = static_cast<int>(std::lround(from + (at - static_cast<double>(left)) * (to - from)));
  }
  return fmt::format("#{:02x}{:02x}{:02x}", channels[0], channels[1], channels[2]);
}

std::string shortened(const std::string& text, size_t letters) {
  return text.size() <= letters ? text
                                : text.substr(0, letters / 2) + "..." + text.substr(text.size() - letters / 2 + 3);
}

/// The two places where a level crosses the sides of a cell, for each line in it (Lorensen and Cline 1987, in the
/// plane).
std::vector<std::pair<double, double>> crossings(const std::array<double, 4>& corners, double level) {
  // Corners and sides in the order left bottom, right bottom, right top, left top.
  constexpr std::array<std::pair<double, double>, 4> kCorners{{{0, 0}, {1, 0}, {1, 1}, {0, 1}}};
  std::vector<std::pair<double, double>> found;
  for (size_t side = 0; side < 4; ++side) {
    const double from = corners[side], to = corners[(side + 1) % 4];
    if ((from < level) == (to < level)) continue;
    const double share = (level - from) / (to - from);
    const auto& [x, y] = kCorners[side];
    const auto& [to_x, to_y] = kCorners[(side + 1) % 4];
    found.emplace_back(x + share * (to_x - x), y + share * (to_y - y));
  }
  return found;
}

class MapWriter {
 public:
  explicit MapWriter(const ValueMap& map) : map_(map) {
    if (map.values.empty() || map.values.size() != map.columns * map.rows)
      fail(ErrorKind::usage, "there are no values to draw a map of");
    const auto [least, most] = std::minmax_element(map.values.begin(), map.values.end());
    low_ = *least;
    high_ = *most > *least ? *most : *least + 1;
  }

  std::string text() const {
    std::string svg = svg_head(kMapLabels + kMapSide + 3 * kChartMargin, kChartTop + kMapSide + kChartMargin);
    svg += svg_text(map_.title, kMapLabels + kMapSide / 2, 22, "middle");
    for (size_t row = 0; row < map_.rows; ++row)
      for (size_t column = 0; column < map_.columns; ++column)
        svg +=
            svg_rectangle(x(static_cast<double>(column) / columns()), y((static_cast<double>(row) + 1) / rows()),
                          kMapSide / columns() + 0.3, kMapSide / rows() + 0.3, colour_of(level_of(value(column, row))));
    svg += level_lines();
    for (const auto& [at_x, at_y] : map_.places)
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"#ffffff\" stroke=\"#000000\" stroke-width=\"0.8\"/>\n",
          x(at_x), y(at_y));
    for (const auto& [at, label] : map_.x_marks)
      svg += svg_text(shortened(label, 14), x(at), kChartTop + kMapSide + 16, "middle");
    for (const auto& [at, label] : map_.y_marks)
      svg += svg_text(shortened(label, 16), kMapLabels - 6, y(at) + 4, "end");
    svg += svg_text(map_.x_label, kMapLabels + kMapSide / 2, kChartTop + kMapSide + 36, "middle");
    svg += svg_text(map_.y_label, 6, kChartTop - 8);
    return svg + scale() + "</svg>\n";
  }

 private:
  double columns() const { return static_cast<double>(map_.columns); }
  double rows() const { return static_cast<double>(map_.rows); }
  double x(double at) const { return kMapLabels + at * kMapSide; }
  double y(double at) const { return kChartTop + (1 - at) * kMapSide; }
  double value(size_t column, size_t row) const { return map_.values[row * map_.columns + column]; }
  int level_of(double value) const {
    return std::min(kLevels - 1, static_cast<int>((value - low_) / (high_ - low_) * kLevels));
  }
  double end_of(int level) const { return low_ + (high_ - low_) * level / kLevels; }
  std::string colour_of(int level) const {
    const double shade = (level + 0.5) / kLevels;
    return shade_colour(map_.low_is_dark ? shade : 1 - shade);
  }

  std::string level_lines() const {
    std::string path;
    for (size_t row = 0; row + 1 < map_.rows; ++row)
      for (size_t column = 0; column + 1 < map_.columns; ++column) {
        const std::array<double, 4> corners = {value(column, row), value(column + 1, row), value(column + 1, row + 1),
                                               value(column, row + 1)};
        for (int level = 1; level < kLevels; ++level) {
          const auto found = crossings(corners, end_of(level));
          for (size_t at = 0; at + 1 < found.size(); at += 2)
            path += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", line_x(column, found[at].first),
                                line_y(row, found[at].second), line_x(column, found[at + 1].first),
                                line_y(row, found[at + 1].second));
        }
      }
    return fmt::format(
        "<path d=\"{}\" stroke=\"#ffffff\" stroke-opacity=\"0.6\" stroke-width=\"0.7\" fill=\"none\"/>\n", path);
  }
  /// Values stand in the middle of their cells.
  double line_x(size_t column, double share) const {
    return x((static_cast<double>(column) + 0.5 + share) / columns());
  }
  double line_y(size_t row, double share) const { return y((static_cast<double>(row) + 0.5 + share) / rows()); }

  std::string scale() const {
    std::string svg;
    const double left = kMapLabels + kMapSide + 20, piece = kMapSide / kLevels;
    for (int level = 0; level < kLevels; ++level)
      svg +=
          svg_rectangle(left, kChartTop + kMapSide - piece * (level + 1), kScaleWidth, piece + 0.3, colour_of(level));
    for (int level = 0; level <= kLevels; level += 2)
      svg += svg_text(fmt::format("{:.4g}", end_of(level)), left + kScaleWidth + 5,
                      kChartTop + kMapSide - piece * level + 4);
    return svg;
  }

  const ValueMap& map_;
  double low_ = 0, high_ = 1;
};

}  // namespace

std::string draw_svg(const Bars& bars) {
  double most = 0;
  for (const Bars::Bar& bar : bars.bars) most = std::max(most, bar.value);
  Axis axis = make_axis(0, most > 0 ? most : 1, 6);
  const double height = kBarHeight * static_cast<double>(bars.bars.size()), right = kChartWidth - kChartMargin;
  std::string svg = svg_head(kChartWidth, kChartTop + height + kChartMargin);
  svg += svg_text(bars.title, kBarLeft, 22);
  const auto column = [&](double value) { return kBarLeft + value / axis.high * (right - kBarLeft); };
  for (const double mark : marks_of(axis)) {
    svg += svg_line(column(mark), kChartTop, column(mark), kChartTop + height, "#e0e0e0");
    svg += svg_text(label_of(axis, mark), column(mark), kChartTop + height + 15, "middle");
  }
  double top = kChartTop;
  for (const Bars::Bar& bar : bars.bars) {
    svg += svg_text(shortened(bar.name, 44), kBarLeft - 6, top + 13, "end");
    svg += svg_rectangle(kBarLeft, top + 3, column(bar.value) - kBarLeft, kBarHeight - 6,
                         kBarColours[static_cast<size_t>(bar.group) % kBarColours.size()]);
    svg += svg_text(fmt::format("{:.3f}", bar.value), column(bar.value) + 4, top + 13);
    top += kBarHeight;
  }
  return svg + svg_text(bars.x_label, (kBarLeft + right) / 2, top + 34, "middle") + "</svg>\n";
}

std::string draw_svg(const ParallelAxes& axes) {
  const auto count = static_cast<double>(std::max<size_t>(2, axes.axes.size()));
  const double width = std::max(kChartWidth, 150 * count);
  const auto column = [&](size_t axis) {
    return 2 * kChartMargin + static_cast<double>(axis) * (width - 4 * kChartMargin) / (count - 1);
  };
  const auto row = [](double at) { return kChartTop + 20 + (1 - at) * kAxesHeight; };
  std::string svg = svg_head(width, kChartTop + kAxesHeight + kChartMargin);
  svg += svg_text(axes.title, width / 2, 18, "middle");
  std::vector<size_t> order(axes.lines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return axes.lines[a].shade > axes.lines[b].shade; });
  for (const size_t index : order) {
    const ParallelAxes::Line& line = axes.lines[index];
    std::string points;
    for (size_t axis = 0; axis < line.at.size(); ++axis)
      if (std::isfinite(line.at[axis])) points += fmt::format("{:.1f},{:.1f} ", column(axis), row(line.at[axis]));
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\" "
        "stroke-opacity=\"0.75\"><title>{}</title></polyline>\n",
        points, shade_colour(line.shade), escape_html(line.hint));
  }
  for (size_t axis = 0; axis < axes.axes.size(); ++axis) {
    svg += svg_line(column(axis), row(1), column(axis), row(0), "#404040");
    svg += svg_text(shortened(axes.axes[axis].name, 26), column(axis), axis % 2 == 0 ? kChartTop : kChartTop + 12,
                    "middle");
    for (const auto& [at, label] : axes.axes[axis].marks) {
      svg += svg_line(column(axis) - 3, row(at), column(axis) + 3, row(at), "#404040");
      svg += svg_text(shortened(label, 16), column(axis) + 5, row(at) + 4);
    }
  }
  return svg + "</svg>\n";
}

std::string draw_svg(const ValueMap& map) { return MapWriter(map).text(); }

}  // namespace weft::plot
