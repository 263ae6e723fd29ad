// Text through cairo: its width, and as much of it as fits.
#pragma once

#include <cairo.h>

#include <string>
#include <vector>

namespace weft::plot {

inline double width_of_text(cairo_t* context, const std::string& content) {
  cairo_text_extents_t extents;
  cairo_text_extents(context, content.c_str(), &extents);
  return extents.x_advance;
}

/// The text, or its beginning and its end with an ellipsis between, as much of them as fits. UTF-8 is cut between
/// letters.
inline std::string fitted_text(cairo_t* context, const std::string& content, double width) {
  if (width_of_text(context, content) <= width) return content;
  std::vector<size_t> letters;  // where each begins
  for (size_t at = 0; at < content.size(); ++at)
    if ((static_cast<unsigned char>(content[at]) & 0xC0) != 0x80) letters.push_back(at);
  for (size_t kept = letters.empty() ? 0 : letters.size() - 1; kept > 0; --kept) {
    const size_t at_the_end = kept / 2;
    const std::string shorter = content.substr(0, letters[kept - at_the_end]) + "…" +
                                (at_the_end == 0 ? "" : content.substr(letters[letters.size() - at_the_end]));
    if (width_of_text(context, shorter) <= width) return shorter;
  }
  return "…";
}

}  // namespace weft::plot
