// Numbers that commas divide, as options and metadata of files have them: "3,224,224".
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace weft {

/// Spaces may stand around each. Nothing where the text is no such list, as an empty one is none.
template <typename Number>
std::optional<std::vector<Number>> parse_number_list(std::string_view text) {
  std::vector<Number> numbers;
  const char* cursor = text.data();
  const char* const end = cursor + text.size();
  const auto skip_spaces = [&] {
    while (cursor != end && *cursor == ' ') ++cursor;
  };
  for (;;) {
    Number number = 0;
    skip_spaces();
    const auto [next, code] = std::from_chars(cursor, end, number);
    if (code != std::errc()) return std::nullopt;
    numbers.push_back(number);
    cursor = next;
    skip_spaces();
    if (cursor == end) return numbers;
    if (*cursor++ != ',') return std::nullopt;
  }
}

}  // namespace weft
