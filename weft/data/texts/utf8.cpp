#include "weft/data/texts/utf8.h"

#include "weft/base/error.h"

namespace weft::data {

uint32_t next_code_point(std::string_view text, size_t& at, const std::string& name) {
  const auto byte = [&](size_t position) { return static_cast<unsigned char>(text[position]); };
  const uint32_t lead = byte(at);
  const size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by length: longer forms of smaller ones are invalid
  uint32_t point = length == 1 ? lead : lead & (0x7fu >> length);
  bool valid = length != 0 && length <= text.size() - at;
  for (size_t follower = 1; valid && follower < length; ++follower) {
    valid = byte(at + follower) >> 6 == 2;
    point = point << 6 | (byte(at + follower) & 0x3fu);
  }
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  if (!valid || point < smallest[length] || point > 0x10ffff || surrogate)
    fail(ErrorKind::data,
         "'{}' is no UTF-8 text: byte {} (0x{:02x}) does not belong there; convert it, such as by `iconv -f latin1 -t "
         "utf-8`",
         name, at + 1, lead);
  at += length;
  return point;
}

std::string utf8_of(uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  const uint32_t followers = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  constexpr uint32_t leads[] = {0, 0xc0, 0xe0, 0xf0};
  std::string text(1, static_cast<char>(leads[followers] | code_point >> (6 * followers)));
  for (uint32_t at = followers; at-- > 0;) text += static_cast<char>(0x80u | ((code_point >> (6 * at)) & 0x3fu));
  return text;
}

std::string printable_utf8(std::string_view text) {
  std::string printable;
  for (size_t at = 0; at < text.size();) try {
      const size_t begin = at;
      next_code_point(text, at, "");
      printable += text.substr(begin, at - begin);
    } catch (const Error&) {
      printable += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at++]));
    }
  return printable;
}

void require_utf8(std::string_view text, const std::string& name) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80)
      ++at;
    else
      next_code_point(text, at, name);
  }
}

}  // namespace weft::data
