// How the rows of a table become numbers: learned from training rows, kept with the run, applied to any other rows
// alike. A column of numbers becomes (x - mean) / deviation, and a second number that says "missing" where training
// rows lack it (0 takes the place of the value then). A column of categories becomes one number per category, 1 at the
// row's own; the last is that of categories which training rows had once or never.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/data/texts/csv_reader.h"

namespace weft::data {

struct TableColumn {
  enum class Kind { number, category, ignored, label };
  Kind kind = Kind::number;
  std::string name;  // as in the header, or its number from 1 on
  double mean = 0, deviation = 1;
  bool can_miss = false;                // a number that training rows lack at times
  std::vector<std::string> categories;  // sorted; "" stands for missing

  /// How many numbers it becomes.
  int64_t width() const;
};

struct TableOptions {
  std::string label;                    // name or number, of a regression several with commas; empty: the last column
  std::string task = "classification";  // or regression
  std::vector<std::string> missing;     // texts that stand for a missing value, besides the empty one
  std::vector<std::string> categories;  // columns of categories, though they hold numbers
  std::vector<std::string> ignored;     // columns to leave out
  bool drops_unlabelled = false;        // rows without a label are left out, and no error
};

class TableEncoding {
 public:
  /// Error(usage) for columns that do not exist; Error(data), naming file, line and column, for what cannot be encoded.
  static TableEncoding learn(const CsvFile& file, std::span<const int64_t> rows, const TableOptions& options);

  std::string to_json() const;
  /// Error(data) for anything but what to_json() gave.
  static TableEncoding from_json(const std::string& text);

  const std::string& task() const { return task_; }
  int64_t width() const;  // of an encoded row
  const std::vector<TableColumn>& columns() const { return columns_; }
  const std::vector<std::string>& classes() const { return classes_; }
  /// The columns to predict, in the order of their names in the label option: one, or of a regression several.
  const std::vector<int64_t>& labels() const { return labels_; }
  const TableColumn& column(int64_t at) const { return columns_[static_cast<size_t>(at)]; }
  bool has_header() const { return has_header_; }
  char separator() const { return separator_; }
  /// Whether a cell says that its value is not known.
  bool is_missing(std::string_view text) const;

  /// The position in `file` of each encoded column, -1 for labels where `file` lacks them. Columns go by name where
  /// both have a header, else by position. Error(data) where one is missing.
  std::vector<int64_t> match(const CsvFile& file) const;
  /// One number per column of cells(): the standardised value (NaN: missing) or the index of the category.
  void read(const CsvFile& file, int64_t row, std::span<const int64_t> positions, float* cells) const;
  int64_t cells() const;
  /// From cells to the numbers that a model reads.
  void expand(const float* cells, float* out) const;

  /// Error(data) for what is no class. A full stop behind a class's name is ignored, as in files for C4.5.
  int32_t read_class(const CsvFile& file, int64_t row, int64_t position) const;
  /// Of the column labels()[label], standardised.
  float read_value(const CsvFile& file, int64_t row, int64_t position, size_t label) const;
  /// Whether the first row of a file without header cannot be a row of such a table, but the second can: a text stands
  /// over a column of numbers.
  bool begins_with_names(const CsvFile& file) const;

 private:
  void learn_column(const CsvFile& file, std::span<const int64_t> rows, int64_t at, bool force_categories);
  void learn_label(const CsvFile& file, std::span<const int64_t> rows);
  void learn_classes(const CsvFile& file, std::span<const int64_t> rows, int64_t at);
  /// `rows`: where the values stand in column `at`.
  void learn_numbers(const CsvFile& file, std::span<const int64_t> rows, int64_t at, std::span<const double> values);
  void learn_categories(TableColumn& column, const CsvFile& file, std::span<const int64_t> rows, int64_t at);
  double read_number(const CsvFile& file, int64_t row, int64_t position, const TableColumn& column) const;
  float read_standardised(const CsvFile& file, int64_t row, int64_t position, const TableColumn& column) const;

  std::string task_ = "classification";
  std::vector<TableColumn> columns_;
  std::vector<int64_t> labels_;
  std::vector<std::string> classes_;  // sorted, by value where all are numbers
  std::vector<std::string> missing_;
  bool has_header_ = false;
  char separator_ = ',';
};

/// "number", "category", "ignored", "label"
std::string_view name_of(TableColumn::Kind kind);

/// The position of a column named by its header or by its number from 1 on (-1 is the last); nullopt for none.
std::optional<int64_t> find_column(const CsvFile& file, const std::string& name);

/// The columns that the option names, with commas between; empty: the last. A column whose name holds commas may stand
/// alone. Error(usage) for one that there is not, or that is named twice.
std::vector<int64_t> find_labels(const CsvFile& file, const std::string& label);

/// Whether samples are rows of a table, so that their encoding is a TableEncoding.
bool is_table(const DatasetInfo& info);

}  // namespace weft::data
