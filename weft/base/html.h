// Text in HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// With nothing that a browser would take for markup, be it between tags or in a quoted attribute.
inline std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (c == '\'')
      result += "&#39;";
    else
      result += c;
  }
  return result;
}

}  // namespace weft
