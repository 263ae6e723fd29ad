#include "weft/data/texts/csv_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/parse_number.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

constexpr int kSniffedLines = 20;
constexpr int64_t kSniffedRows = 1000;

bool is_space_or_tab(char c) { return c == ' ' || c == '\t'; }

/// Where a physical line ends: at its newline or at the end of the text.
size_t line_end(std::string_view text, size_t at) { return std::min(text.find('\n', at), text.size()); }

bool is_empty_line(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return is_space_or_tab(c) || c == '\r'; });
}

/// Whether the first lines have the same number of words, more than one, with blanks between them.
bool is_in_blanks(std::string_view text) {
  int64_t in_first = 0;
  int lines = 0;
  for (size_t at = 0; at < text.size() && lines < kSniffedLines;) {
    const size_t end = line_end(text, at);
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (is_empty_line(line)) continue;
    int64_t words = 0;
    bool in_word = false;
    for (const char c : line) {
      const bool is_blank = is_space_or_tab(c) || c == '\r';
      words += !is_blank && !in_word;
      in_word = !is_blank;
    }
    if (lines++ == 0) in_first = words;
    if (words != in_first) return false;
  }
  return in_first > 1;
}

}  // namespace

std::string unnamed_column(int64_t column) { return fmt::format("unnamed {}", column + 1); }

bool parse_number(std::string_view text, bool decimal_comma, double& number) {
  std::array<char, 64> copy{};
  if (text.starts_with('+')) text.remove_prefix(1);
  if (decimal_comma && text.size() < copy.size() && text.find(',') != text.npos) {
    std::replace_copy(text.begin(), text.end(), copy.begin(), ',', '.');
    text = {copy.data(), text.size()};
  }
  const std::optional<double> parsed = weft::parse_number<double>(text);
  if (!parsed || !std::isfinite(*parsed)) return false;
  number = *parsed;
  return true;
}

CsvFile::CsvFile(const std::filesystem::path& path, const CsvOptions& options)
    : path_(path.string()), separator_(options.separator) {
  std::error_code code;
  if (path_.empty()) fail(ErrorKind::usage, "[csv] wants a file: write csv:FILE?label=COLUMN");
  if (!std::filesystem::exists(path, code))
    fail(ErrorKind::io, "[csv] no file '{}'{}; check the path", path_, code ? ": " + code.message() : "");
  text_ = read_maybe_gzip(path);
  if (std::find(text_.begin(), text_.end(), uint8_t{0}) != text_.end())
    fail(ErrorKind::data, "[csv] '{}' is no text: it holds zero bytes; export the table as CSV in UTF-8", path_);
  require_utf8({reinterpret_cast<const char*>(text_.data()), text_.size()}, path_);
  parse(options);
  if (rows_.empty()) fail(ErrorKind::data, "[csv] '{}' holds no rows; check the file", path_);
  const bool named = !options.wanted_name.empty();
  set_header(options.header == Header::yes || (options.header == Header::automatic && (named || looks_like_header())));
}

void CsvFile::set_header(bool has_header) {
  if (has_header == !header_.empty()) return;
  if (!has_header) fail(ErrorKind::internal, "a header stays one");
  if (rows_.size() < 2) fail(ErrorKind::data, "[csv] '{}' holds a header and no rows; check the file", path_);
  std::set<std::string> seen;
  for (int64_t column = 0; column < columns_; ++column) {
    header_.emplace_back(cell(0, column));
    if (header_.back().empty()) header_.back() = unnamed_column(column);
    if (!seen.insert(header_.back()).second)
      fail(ErrorKind::data, "[csv] {}: two columns are named '{}'; give each its own name, or say header=no",
           where(0, column), header_.back());
  }
  rows_.erase(rows_.begin());
  cells_.erase(cells_.begin(), cells_.begin() + columns_);
}

std::string CsvFile::where(int64_t row, int64_t column) const {
  const Row& at = rows_[static_cast<size_t>(row)];
  const auto* begin = reinterpret_cast<const char*>(text_.data()) + at.begin;
  return fmt::format("'{}':{}:{}", path_, at.line, cell(row, column).data() - begin + 1);
}

char CsvFile::detect_separator(size_t begin) const {
  const std::string_view text(reinterpret_cast<const char*>(text_.data()), text_.size());
  char best = ',';
  int sniffed = 0;
  std::pair<int, int> best_score{0, 0};  // lines that agree with the first on how often it stands there; how often
  for (const char candidate : {',', ';', '\t', '|'}) {
    int agreeing = 0, in_first = -1, lines = 0;
    for (size_t at = begin; at < text.size() && lines < kSniffedLines;) {
      const size_t end = line_end(text, at);
      const std::string_view line = text.substr(at, end - at);
      at = end + 1;
      if (is_empty_line(line)) continue;
      ++lines;
      int count = 0;
      bool quoted = false;
      for (const char c : line) {
        quoted = quoted != (c == '"');
        count += !quoted && c == candidate;
      }
      if (in_first < 0) in_first = count;
      agreeing += count == in_first;
    }
    sniffed = lines;
    const std::pair score{agreeing, in_first};
    if (in_first > 0 && score > best_score) {
      best_score = score;
      best = candidate;
    }
  }
  const bool all_agree = best_score.second > 0 && best_score.first == sniffed;
  return all_agree || !is_in_blanks(text.substr(begin)) ? best : kBlanks;
}

void CsvFile::parse(const CsvOptions& options) {
  auto* const text = reinterpret_cast<char*>(text_.data());
  const std::string_view whole(text, text_.size());
  const size_t size = whole.size();
  size_t at = whole.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  int64_t line = 1;
  for (; line <= options.skip && at < size; ++line) at = line_end(whole, at) + 1;
  if (separator_ == 0) separator_ = detect_separator(std::min(at, size));
  const bool by_blanks = separator_ == kBlanks;
  const auto separates = [&](size_t position) {
    return by_blanks ? is_space_or_tab(text[position]) : text[position] == separator_;
  };
  const auto blank = [&](size_t position) {
    return is_space_or_tab(text[position]) && (by_blanks || text[position] != separator_);
  };
  const auto ends_row = [&](size_t position) {
    return position >= size || text[position] == '\n' ||
           (text[position] == '\r' && (position + 1 >= size || text[position + 1] == '\n'));
  };
  const auto fail_at = [&](size_t row_begin, size_t position, const std::string& what) {
    fail(ErrorKind::data, "[csv] '{}':{}:{}: {}", path_, line, position - row_begin + 1, what);
  };
  while (at < size) {
    const size_t physical_end = line_end(whole, at);
    if (is_empty_line(whole.substr(at, physical_end - at))) {
      at = physical_end + 1;
      ++line;
      continue;
    }
    const size_t row_begin = at;
    int64_t newlines = 0;
    size_t count = 0;
    for (bool more = true; more; ++count) {
      while (at < size && blank(at)) ++at;
      if (at < size && text[at] == '"') {
        const size_t opening = at++;
        size_t to = at;
        const size_t from = at;
        for (;; ++at) {
          if (at >= size) fail_at(row_begin, opening, "a quote opens here and nothing closes it; correct the file");
          if (text[at] == '"' && (at + 1 >= size || text[at + 1] != '"')) break;
          if (text[at] == '"') ++at;
          newlines += text[at] == '\n';
          text[to++] = text[at];
        }
        cells_.emplace_back(text + from, to - from);
        ++at;
        while (at < size && blank(at)) ++at;
        if (!ends_row(at) && (by_blanks ? !is_space_or_tab(text[at - 1]) : !separates(at)))
          fail_at(row_begin, at,
                  "text follows a quoted field; double the quotes inside of it, or correct the separator");
      } else {
        const size_t from = at;
        while (!ends_row(at) && !separates(at)) ++at;
        size_t end = at;
        while (end > from && blank(end - 1)) --end;
        cells_.emplace_back(text + from, end - from);
      }
      while (by_blanks && at < size && is_space_or_tab(text[at])) ++at;
      more = !ends_row(at);
      if (more && !by_blanks) ++at;  // the separator
    }
    if (rows_.empty()) columns_ = static_cast<int64_t>(count);
    const bool fits = static_cast<int64_t>(count) == columns_;
    if (!fits && rows_.size() == 1 && (columns_ == 1 || count == 1))
      fail_at(
          row_begin, std::min(at, size),
          fmt::format("{} fields in this row, {} in line {}, the first; where that is a title or a comment, leave it "
                      "out with {}={}, else name the separator (separator=...)",
                      count, columns_, rows_.front().line, options.skip_option, rows_.front().line));
    if (!fits)
      fail_at(
          row_begin, std::min(at, size),
          fmt::format("{} fields in this row, {} in the first; correct the row, name the separator (separator=...), or "
                      "leave lines before the table out ({}=N)",
                      count, columns_, options.skip_option));
    rows_.push_back({row_begin, line});
    line += newlines + 1;
    if (at < size && text[at] == '\r') ++at;
    ++at;  // the newline
  }
}

/// As a reader would tell: over most columns of numbers stands a text; or, in a table of texts, the first row's never
/// occur again.
bool CsvFile::looks_like_header() const {
  if (rows_.size() < 2) return false;
  const int64_t last = std::min(rows(), kSniffedRows);
  const bool decimal_comma = separator_ != ',';
  const auto is_missing = [](std::string_view text) {
    const auto is_text = [&](std::string_view word) { return word == text; };
    return text.empty() || std::any_of(std::begin(kMissingWords), std::end(kMissingWords), is_text) ||
           std::any_of(std::begin(kGuessedMissingWords), std::end(kGuessedMissingWords), is_text);
  };
  bool all_new = true, any_number = false;
  int64_t names_over_numbers = 0, numbers_over_numbers = 0;
  double number = 0;
  std::set<std::string_view> names;
  for (int64_t column = 0; column < columns_; ++column) {
    const std::string_view first = cell(0, column);
    int64_t numbers = 0, texts = 0;
    for (int64_t row = 1; row < last; ++row) {
      const std::string_view value = cell(row, column);
      if (parse_number(value, decimal_comma, number))
        ++numbers;
      else if (!is_missing(value))
        ++texts;
      all_new = all_new && value != first;
    }
    const bool first_is_number = parse_number(first, decimal_comma, number);
    any_number = any_number || numbers > 0 || first_is_number;
    all_new = all_new && !first.empty() && names.insert(first).second;
    if (numbers == 0 || numbers < 9 * texts) continue;
    numbers_over_numbers += first_is_number;
    names_over_numbers += !first_is_number && !is_missing(first);
  }
  return names_over_numbers > numbers_over_numbers || (all_new && !any_number);
}

}  // namespace weft::data
