// Splits the text of a table into cells: RFC 4180 (quoted fields, "" for a quote in them, CR LF), other separators,
// with or without a header. Blanks around fields that are not quoted are left out, so are empty lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

/// The separator of tables whose columns are aligned: any number of spaces and tabs.
inline constexpr char kBlanks = ' ';

enum class Header { automatic, yes, no };

struct CsvOptions {
  char separator = 0;  // 0: the one of , ; tab | that divides the first lines evenly
  Header header = Header::automatic;
  int64_t skip = 0;                  // lines before the table
  std::string wanted_name;           // a column that must be in the header: with it, `automatic` means yes
  std::string skip_option = "skip";  // what a user calls `skip`, for messages
};

class CsvFile {
 public:
  /// Error(io) for a missing file; Error(data), with line and column, for rows of unequal length and for quotes that do
  /// not end.
  CsvFile(const std::filesystem::path& path, const CsvOptions& options);
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;

  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  int64_t columns() const { return columns_; }
  std::string_view cell(int64_t row, int64_t column) const {
    return cells_[static_cast<size_t>(row * columns_ + column)];
  }
  /// Empty where there is no header. A column without a name, such as the index that pandas writes first, goes by
  /// unnamed_column().
  const std::vector<std::string>& header() const { return header_; }
  char separator() const { return separator_; }
  /// Takes the first row for the header, or the header for the first row.
  void set_header(bool has_header);

  const std::string& path() const { return path_; }
  /// "'data.csv':17:5", for messages: line and column of a cell, both from 1.
  std::string where(int64_t row, int64_t column) const;

 private:
  struct Row {
    size_t begin;  // byte in text_
    int64_t line;
  };
  void parse(const CsvOptions& options);
  char detect_separator(size_t begin) const;
  bool looks_like_header() const;

  std::string path_;
  std::vector<uint8_t> text_;  // cells point into it; quotes in them are taken out in place
  std::vector<std::string_view> cells_;
  std::vector<Row> rows_;
  std::vector<std::string> header_;
  int64_t columns_ = 0;
  char separator_ = ',';
};

/// Words that mean "not known" where nothing names others, beside the empty text; and such as might be a category, so
/// that a line says what was taken for that.
inline constexpr std::string_view kMissingWords[] = {"?", "NA", "N/A", "nan", "NaN", "null"};
inline constexpr std::string_view kGuessedMissingWords[] = {"NULL", "None", "n/a", "#N/A", "<NA>", "-"};

/// "unnamed 1": `column` from 0 on.
std::string unnamed_column(int64_t column);

/// A finite number, with a decimal comma where `decimal_comma`; false for anything else.
bool parse_number(std::string_view text, bool decimal_comma, double& number);

}  // namespace weft::data
