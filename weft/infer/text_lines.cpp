#include "weft/infer/text_lines.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/data/texts/text_file.h"
#include "weft/data/texts/utf8.h"
#include "weft/infer/for_each_file.h"

namespace weft::infer {

std::string read_text_input(const std::string& file) {
  if (std::error_code code; file != "-" && !std::filesystem::exists(file, code))
    fail(ErrorKind::io, "there is no file '{}'; texts come from files, and `-` reads standard input", file);
  return data::read_text_file(file_named(file));
}

std::vector<TextLine> read_text_lines(const std::string& file, size_t field, bool& damaged) {
  const std::string text = read_text_input(file);
  std::vector<TextLine> lines;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (const size_t tab = line.find('\t'); tab != line.npos) {
      if (field == 1) line.erase(0, tab + 1);
      line.resize(std::min(line.find('\t'), line.size()));
    }
    const size_t first = line.find_first_not_of(" \r\v\f"), last = line.find_last_not_of(" \r\v\f");
    if (first == line.npos) continue;
    TextLine found{number, line.substr(first, last - first + 1), fmt::format("'{}':{}", file, number)};
    try {
      data::require_utf8(found.text, fmt::format("{}:{}", file, number));
      lines.push_back(std::move(found));
    } catch (const Error& error) {
      say(error.what());
      damaged = true;
    }
  }
  if (lines.empty() && !damaged) fail(ErrorKind::data, "'{}' holds no text; want one on each line", file);
  return lines;
}

}  // namespace weft::infer
