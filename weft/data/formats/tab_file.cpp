#include "weft/data/formats/tab_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "weft/base/error.h"
#include "weft/data/texts/text_file.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\v\f";
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

TabFile::TabFile(const std::string& kind, const std::string& path, const std::string& fields, int64_t skipped_lines)
    : kind_(kind), path_(path) {
  std::error_code code;
  if (path.empty()) fail(ErrorKind::usage, "[{0}] wants a file: write {0}:FILE, with {1} on each line", kind, fields);
  if (!std::filesystem::exists(path, code))
    fail(ErrorKind::io, "[{}] no file '{}'{}; check the path", kind, path, code ? ": " + code.message() : "");
  content_ = read_text_file(path);
  require_utf8(content_, path);
  std::string_view rest = content_;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (number <= skipped_lines) continue;
    if (without_blanks(line).empty()) {
      leave_out("without text", number);
      continue;
    }
    const size_t tab = line.find('\t');
    if (tab == line.npos)
      fail(ErrorKind::data, "[{}] '{}':{}: the line has no tab; want {} on each line", kind, path, number, fields);
    const size_t next = std::min(line.find('\t', tab + 1), line.size());
    const std::string_view first = without_blanks(line.substr(0, tab));
    const std::string_view second = without_blanks(line.substr(tab + 1, next - tab - 1));
    if (first.empty() || second.empty())
      leave_out("with an empty field", number);
    else
      lines_.push_back({number, first, second});
  }
  if (lines_.empty()) fail(ErrorKind::data, "[{}] '{}' holds no line; want {} on each", kind, path, fields);
}

std::string TabFile::where(const TabLine& line) const { return fmt::format("[{}] '{}':{}", kind_, path_, line.number); }

void TabFile::leave_out(const std::string& reason, int64_t line_number) {
  const auto known =
      std::find_if(left_out_.begin(), left_out_.end(), [&](const LeftOut& entry) { return entry.reason == reason; });
  if (known == left_out_.end())
    left_out_.push_back({reason, 1, line_number});
  else
    ++known->count;
}

std::string TabFile::note() const {
  std::string text;
  for (const LeftOut& entry : left_out_)
    text += fmt::format("{} {} line{} {} ({}line {})", text.empty() ? "" : ",", entry.count,
                        entry.count == 1 ? "" : "s", entry.reason, entry.count == 1 ? "" : "such as ", entry.first);
  return text.empty() ? text : fmt::format("'{}': left out{}", path_, text);
}

}  // namespace weft::data
