// A number that fills a whole text, as users write it in options and files.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace weft {

/// Nothing where anything stands beside the number, even a blank, or where it does not fit. Of real numbers also "inf"
/// and "nan".
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, number);
  if (code != std::errc() || end != last) return std::nullopt;
  return number;
}

}  // namespace weft
