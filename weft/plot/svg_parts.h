// Pieces of SVG documents that are written as text, without cairo.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "weft/base/html.h"

namespace weft::plot {

/// In pixels, on white.
inline std::string svg_head(double width, double height) {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      width, height);
}

/// `anchor`: start, middle or end.
inline std::string svg_text(const std::string& text, double x, double y, std::string_view anchor = "start") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escape_html(text));
}

inline std::string svg_line(double x, double y, double to_x, double to_y, std::string_view stroke) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x, y, to_x,
                     to_y, stroke);
}

inline std::string svg_rectangle(double x, double y, double width, double height, std::string_view fill) {
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", x, y, width,
                     height, fill);
}

}  // namespace weft::plot
