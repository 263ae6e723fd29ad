// Text through cairo: its width, and as much of it as fits.
#pragma once

#include <cairo.h>

#include <string>

namespace weft::plot {

inline double width_of_text(cairo_t* context, const std::string& content) {
  cairo_text_extents_t extents;
  cairo_text_extents(context, content.c_str(), &extents);
  return extents.x_advance;
}

/// The text, or as much of its beginning as fits, with an ellipsis. UTF-8 is cut between letters.
inline std::string fitted_text(cairo_t* context, std::string content, double width) {
  if (width_of_text(context, content) <= width) return content;
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  while (!content.empty() && width_of_text(context, content + "…") > width) {
    while (continues(content.back()) && content.size() > 1) content.pop_back();
    content.pop_back();
  }
  return content + "…";
}

}  // namespace weft::plot
