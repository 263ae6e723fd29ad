#include "weft/base/toml_depth.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/error.h"

namespace weft {

namespace {

constexpr int kMost = 64;

/// The position behind a string that begins at `at`, or behind the text where it does not end.
size_t end_of_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at).starts_with(three);
  for (at += is_long ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"')
      ++at;
    else if (text[at] == '\n' && !is_long)
      return at;
    else if (text[at] == quote && !is_long)
      return at + 1;
    else if (text.substr(at).starts_with(three) && is_long)
      return at + 3;
  }
  return text.size();
}

}  // namespace

void require_shallow_toml(std::string_view text, std::string_view name) {
  int depth = 0, parts = 0;
  int64_t line = 1;
  const auto require = [&](bool is_shallow) {
    if (!is_shallow)
      fail(ErrorKind::data, "{}:{}: nests more than {} levels deep; write it with fewer", name, line, kMost);
  };
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      for (const size_t end = end_of_string(text, at); at < end; ++at) line += text[at] == '\n' ? 1 : 0;
      continue;
    }
    if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
      continue;
    }
    if (c == '[' || c == '{') require(++depth <= kMost);
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == '.') require(++parts <= kMost);
    if (c == '\n' || c == '=' || c == ',') parts = 0;
    if (c == '\n') ++line;
    ++at;
  }
}

}  // namespace weft
