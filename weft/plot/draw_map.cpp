#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weft/base/html.h"
#include "weft/plot/figure.h"
#include "weft/plot/map.h"
#include "weft/plot/svg_parts.h"

namespace weft::plot {

namespace {

constexpr double kWidth = 1080, kMapPanelHeight = 300;  // pixels
constexpr double kMapLeft = 84, kMapRight = 20, kMapTop = 62, kMapGap = 52, kMapLine = 15;
constexpr double kLetterWidth = 6.2, kLetterHeight = 11;
/// Distinct for the colour-blind too (Okabe and Ito 2008).
constexpr std::array<std::string_view, 6> kGroupColours{"#999999", "#0072b2", "#56b4e9",
                                                        "#d55e00", "#009e73", "#cc79a7"};

std::string_view colour(int group) { return kGroupColours[static_cast<size_t>(group) % kGroupColours.size()]; }

class PanelWriter {
 public:
  PanelWriter(const Map& map, const MapPanel& panel, double top) : map_(map), panel_(panel), top_(top) {
    double right = 1, high = 1;
    for (const MapPanel& each : map.panels) {  // one x axis for all
      for (const Area& area : each.areas) right = std::max(right, area.x.back());
      for (const Box& box : each.boxes) right = std::max(right, box.right);
    }
    for (const Area& area : panel.areas) high = std::max(high, *std::max_element(area.high.begin(), area.high.end()));
    for (const Box& box : panel.boxes) high = std::max(high, box.top);
    x_ = make_axis(0, right, 9);
    x_.high = right;
    y_ = make_axis(0, high, 6);
  }

  std::string text() const {
    std::string svg = svg_text(panel_.title, kMapLeft, top_ - 8);
    for (const double mark : marks_of(y_)) {
      svg += svg_line(kMapLeft, row(mark), kWidth - kMapRight, row(mark), "#e0e0e0");
      svg += svg_text(map_.label_of_y(mark), kMapLeft - 6, row(mark) + 4, "end");
    }
    for (const double mark : marks_of(x_))
      if (mark <= x_.high) svg += svg_text(label_of(x_, mark), column(mark), top_ + kMapPanelHeight + 15, "middle");
    for (const Area& area : panel_.areas) svg += area_text(area);
    for (const Box& box : panel_.boxes) svg += box_text(box);
    if (map_.mark >= 0) {
      svg += svg_line(column(map_.mark), top_, column(map_.mark), top_ + kMapPanelHeight, "#000000");
      const bool is_right = column(map_.mark) > kWidth / 2;
      svg += svg_text(map_.mark_label, column(map_.mark) + (is_right ? -5 : 5), top_ + 12, is_right ? "end" : "start");
    }
    return svg;
  }

 private:
  double column(double x) const { return kMapLeft + x / x_.high * (kWidth - kMapLeft - kMapRight); }
  double row(double y) const { return top_ + kMapPanelHeight * (1 - y / y_.high); }

  std::string area_text(const Area& area) const {
    std::string points;
    for (size_t step = 0; step < area.high.size(); ++step)
      points += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", column(area.x[step]), row(area.high[step]),
                            column(area.x[step + 1]), row(area.high[step]));
    for (size_t step = area.low.size(); step-- > 0;)
      points += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", column(area.x[step + 1]), row(area.low[step]),
                            column(area.x[step]), row(area.low[step]));
    return fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", points, colour(area.group));
  }

  std::string box_text(const Box& box) const {
    const double left = column(box.left), top = row(box.top);
    const double width = column(box.right) - left, height = row(box.bottom) - top;
    std::string svg = fmt::format(
        "<g><title>{}</title><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
        "fill-opacity=\"0.75\" stroke=\"#ffffff\" stroke-width=\"0.4\"/>",
        escape_html(box.hint), left, top, std::max(width, 0.3), std::max(height, 0.2), colour(box.group));
    const bool fits = height >= kLetterHeight && width >= kLetterWidth * static_cast<double>(box.label.size()) + 4;
    if (fits) svg += svg_text(box.label, left + 3, top + height / 2 + 4);
    return svg + "</g>\n";
  }

  const Map& map_;
  const MapPanel& panel_;
  const double top_;
  Axis x_, y_;
};

}  // namespace

std::string draw_svg(const Map& map) {
  const auto panels = static_cast<double>(map.panels.size());
  const double below = kMapTop + panels * (kMapPanelHeight + kMapGap);
  const double height = below + kMapLine * static_cast<double>(map.lines.size() + 1);
  std::string svg = svg_head(kWidth, height);
  svg += svg_text(map.title, kMapLeft, 20);
  double legend = kMapLeft;
  for (size_t group = 0; group < map.groups.size(); ++group) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", legend,
                       colour(static_cast<int>(group)));
    svg += svg_text(map.groups[group], legend + 14, 37);
    legend += 34 + kLetterWidth * static_cast<double>(map.groups[group].size());
  }
  double top = kMapTop;
  for (const MapPanel& panel : map.panels) {
    svg += PanelWriter(map, panel, top).text();
    top += kMapPanelHeight + kMapGap;
  }
  svg += svg_text(map.x_label, (kMapLeft + kWidth - kMapRight) / 2, below - 18, "middle");
  for (size_t index = 0; index < map.lines.size(); ++index)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-family=\"monospace\" xml:space=\"preserve\">{}</text>\n",
                       kMapLeft, below + kMapLine * static_cast<double>(index), escape_html(map.lines[index]));
  return svg + "</svg>\n";
}

}  // namespace weft::plot
