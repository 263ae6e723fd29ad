#include <algorithm>
#include <array>
#include <map>

#include "weft/base/error.h"
#include "weft/plot/charts.h"
#include "weft/plot/figure.h"
#include "weft/plot/svg_parts.h"

namespace weft::plot {

namespace {

class TimelineWriter {
 public:
  explicit TimelineWriter(const Timeline& timeline) : timeline_(timeline) {
    if (timeline.boxes.empty()) fail(ErrorKind::usage, "nothing happens that a timeline could show");
    std::vector<bool> is_used(timeline.rows.size(), false);
    double end = 0;
    for (const Timeline::Box& box : timeline.boxes) {
      is_used[box.row] = true;
      end = std::max(end, box.end);
      if (std::find(kinds_.begin(), kinds_.end(), box.kind) == kinds_.end()) kinds_.push_back(box.kind);
    }
    for (size_t row = 0; row < is_used.size(); ++row)
      if (is_used[row]) places_.emplace(row, places_.size());
    axis_ = make_axis(0, end > 0 ? end : 1, 8);
  }

  std::string text() const {
    const double bottom = kTop + kRowHeight * static_cast<double>(places_.size());
    std::string svg = svg_head(kWidth, bottom + kBelow);
    svg += svg_text(timeline_.title, kLeft, 20);
    for (const double mark : marks_of(axis_)) {
      svg += svg_line(column(mark), kTop, column(mark), bottom, "#e0e0e0");
      svg += svg_text(label_of(axis_, mark), column(mark), bottom + 14, "middle");
    }
    svg += svg_text(timeline_.x_label, kWidth - kRight, bottom + 30, "end");
    for (const auto& [row, place] : places_) svg += svg_text(timeline_.rows[row], kLeft - 8, top_of(place) + 15, "end");
    for (const Timeline::Box& box : joined()) svg += drawn(box);
    double left = kLeft;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      svg += svg_rectangle(left, bottom + 36, 12, 12, colour_of(kinds_[kind]));
      svg += svg_text(kinds_[kind], left + 16, bottom + 46);
      left += 34 + kPixelsPerLetter * static_cast<double>(kinds_[kind].size());
    }
    return svg + "</svg>\n";
  }

 private:
  double column(double time) const { return kLeft + time / axis_.high * (kWidth - kLeft - kRight); }
  double top_of(size_t place) const { return kTop + kRowHeight * static_cast<double>(place); }
  std::string_view colour_of(const std::string& kind) const {
    const auto place = std::find(kinds_.begin(), kinds_.end(), kind) - kinds_.begin();
    return kColours[static_cast<size_t>(place) % kColours.size()];
  }

  std::vector<Timeline::Box> joined() const {
    std::vector<Timeline::Box> boxes = timeline_.boxes, all;
    std::stable_sort(boxes.begin(), boxes.end(), [](const Timeline::Box& a, const Timeline::Box& b) {
      return std::pair(a.row, a.begin) < std::pair(b.row, b.begin);
    });
    for (Timeline::Box& box : boxes) {
      const bool goes_on = !all.empty() && all.back().row == box.row && all.back().kind == box.kind &&
                           column(box.end) - column(box.begin) < 1 && column(box.begin) - column(all.back().end) < 1;
      if (goes_on)
        all.back().end = std::max(all.back().end, box.end);
      else
        all.push_back(std::move(box));
    }
    return all;
  }

  std::string drawn(const Timeline::Box& box) const {
    const double left = column(box.begin), width = std::max(0.4, column(box.end) - left),
                 top = top_of(places_.at(box.row));
    std::string svg = fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\" stroke=\"#ffffff\" "
        "stroke-width=\"{}\"><title>{}</title></rect>\n",
        left, top + 2, width, kRowHeight - 4, colour_of(box.kind), width > 3 ? "0.8" : "0", escape_html(box.name));
    // Of "forward 12" the number, where no more fits.
    const std::string last = box.name.substr(box.name.rfind(' ') + 1);
    for (const std::string& label : {box.name, last})
      if (kPixelsPerLetter * static_cast<double>(label.size()) + 4 < width)
        return svg + svg_text(label, left + width / 2, top + 15, "middle");
    return svg;
  }

  static constexpr double kWidth = 980, kLeft = 150, kRight = 30, kTop = 40, kRowHeight = 22, kBelow = 62,
                          kPixelsPerLetter = 6.5;
  // Told apart by the colour-blind, too (Okabe and Ito 2008).
  static constexpr std::array<std::string_view, 7> kColours{"#56b4e9", "#e69f00", "#009e73", "#cc79a7",
                                                            "#d55e00", "#0072b2", "#f0e442"};

  const Timeline& timeline_;
  std::map<size_t, size_t> places_;  // of the rows that are drawn
  std::vector<std::string> kinds_;   // in the order of their boxes
  Axis axis_;
};

}  // namespace

std::string draw_svg(const Timeline& timeline) { return TimelineWriter(timeline).text(); }

}  // namespace weft::plot
