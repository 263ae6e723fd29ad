// Unicode code points of UTF-8 text (RFC 3629).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::data {

/// The code point that begins at `at`, which moves behind it. Error(data) for what is no UTF-8, naming the byte; `name`
/// is that of the text.
uint32_t next_code_point(std::string_view text, size_t& at, const std::string& name);
/// Its UTF-8.
std::string utf8_of(uint32_t code_point);
/// The same text with \xHH for each byte that is no UTF-8: names of files may hold any bytes, JSON may not.
std::string printable_utf8(std::string_view text);
/// Error(data) as above, unless all of it is UTF-8.
void require_utf8(std::string_view text, const std::string& name);

}  // namespace weft::data
