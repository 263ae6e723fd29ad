#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weft/plot/figure.h"
#include "weft/plot/view.h"

namespace weft::plot {

namespace {

constexpr std::string_view kMarks = "*o+x#@%&";
constexpr char kAbove = '^', kBelow = 'v';  // at the edge, of points that lie beyond it

/// Where `value` falls among `cells` cells; beyond the axis, at its end.
int cell_of(double value, const Axis& axis, int cells) {
  const double share = std::clamp((value - axis.low) / (axis.high - axis.low), 0.0, 1.0);
  return std::clamp(static_cast<int>(std::lround(share * (cells - 1))), 0, cells - 1);
}

class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns),
        rows_(rows),
        lines_(static_cast<size_t>(rows), std::string(static_cast<size_t>(columns), ' ')) {}

  void draw(const Series& series, const Axis& x, const Axis& y, char mark) {
    int last_column = -1, last_row = -1;
    for (size_t index = 0; index < series.x.size(); ++index) {
      if (!is_point(series, index)) {
        last_column = -1;
        continue;
      }
      const int column = cell_of(series.x[index], x, columns_), row = rows_ - 1 - cell_of(series.y[index], y, rows_);
      if (last_column >= 0 && series.line != Line::none) line(last_column, last_row, column, row, mark);
      const double value = series.y[index];
      put(column, row, value > y.high ? kAbove : value < y.low ? kBelow : mark);
      last_column = column;
      last_row = row;
    }
  }
  const std::string& row(int index) const { return lines_[static_cast<size_t>(index)]; }

 private:
  void put(int column, int row, char mark) { lines_[static_cast<size_t>(row)][static_cast<size_t>(column)] = mark; }
  void line(int column, int row, int to_column, int to_row, char mark) {
    const int steps = std::max(std::abs(to_column - column), std::abs(to_row - row));
    for (int step = 1; step < steps; ++step)
      put(column + (to_column - column) * step / steps, row + (to_row - row) * step / steps, mark);
  }

  int columns_, rows_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string draw_text(const Panel& whole, int columns, int rows) {
  Panel panel = whole;
  std::erase_if(panel.series, [](const Series& series) { return series.faint; });
  const View view = view_of(panel, 6, 5);
  if (view.empty) return fmt::format("{}: nothing measured yet\n", panel.title);
  const Axis &x = view.x, &y = view.y;
  size_t margin = 0;
  for (const double mark : marks_of(y)) margin = std::max(margin, y_label(panel, y, mark).size());
  const int width = std::max(10, columns - static_cast<int>(margin) - 2);
  Canvas canvas(width, rows);
  std::string legend;
  size_t next = 0;
  for (const Series& series : panel.series) {
    const char mark = kMarks[next++ % kMarks.size()];
    canvas.draw(series, x, y, mark);
    legend += fmt::format("  {} {}\n", mark, series.name);
  }
  std::vector<std::string> labels(static_cast<size_t>(rows));
  for (const double mark : marks_of(y))
    labels[static_cast<size_t>(rows - 1 - cell_of(mark, y, rows))] = y_label(panel, y, mark);
  std::string text = panel.title + "\n";
  for (int row = 0; row < rows; ++row) {
    std::string line = fmt::format("{:>{}} |{}", labels[static_cast<size_t>(row)], margin, canvas.row(row));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += std::string(margin + 1, ' ') + "+" + std::string(static_cast<size_t>(width), '-') + "\n";
  const std::string first = label_of(x, x.low), last = label_of(x, x.high);
  const int gap = width - static_cast<int>(first.size() + last.size());
  text += fmt::format("{}{}{:^{}}{}\n", std::string(margin + 2, ' '), first, panel.x_label, std::max(1, gap), last);
  if (view.above) legend += fmt::format("  {} beyond the axis: up to {}\n", kAbove, value_label(panel, *view.above));
  if (view.below) legend += fmt::format("  {} beyond the axis: down to {}\n", kBelow, value_label(panel, *view.below));
  return text + legend;
}

}  // namespace weft::plot
