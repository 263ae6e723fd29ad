#include "weft/data/texts/text_file.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"

namespace weft::data {

std::string read_text_file(const std::string& path) {
  const std::vector<uint8_t> bytes = read_maybe_gzip(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    fail(ErrorKind::data, "'{}' is UTF-16; convert it, by `iconv -f utf-16 -t utf-8`", path);
  if (text.find('\0') != text.npos)
    fail(ErrorKind::data, "'{}' is no text: it holds zero bytes; give a text file in UTF-8", path);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return std::string(text);
}

}  // namespace weft::data
