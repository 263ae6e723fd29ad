#include "weft/data/formats/table_encoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/parse_number.h"
#include "weft/data/dataset/class_names.h"

namespace weft::data {

namespace {

using Kind = TableColumn::Kind;

constexpr int64_t kMostCategories = 10000;
constexpr int64_t kMostNumbers = 1000000;  // per row
/// A column with so large a share of numbers is meant to hold numbers: the rest are mistakes to be named. So is one
/// with the smaller share where most of its numbers stand there once, as no names of categories would.
constexpr double kMostlyNumbers = 0.9, kMoreNumbers = 0.5;
constexpr int64_t kFewRows = 20;
/// Deviations from the mean. What is further away has squares that no sum of f32 holds, and stands there by mistake.
constexpr double kFurthest = 1e12;

/// Where it stands, and the column.
constexpr const char* kNoLabel =
    "[csv] {}: the label, {}, is missing; fill it in, or leave such rows out with unlabelled=drop";

std::string in_words(const TableColumn& column) { return fmt::format("column '{}'", column.name); }

bool mostly_distinct(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const auto distinct = std::unique(numbers.begin(), numbers.end()) - numbers.begin();
  return 2 * distinct > static_cast<std::ptrdiff_t>(numbers.size());
}

}  // namespace

int64_t TableColumn::width() const {
  if (kind == Kind::number) return can_miss ? 2 : 1;
  return kind == Kind::category ? static_cast<int64_t>(categories.size()) + 1 : 0;
}

std::optional<int64_t> find_column(const CsvFile& file, const std::string& name) {
  const auto found = std::find(file.header().begin(), file.header().end(), name);
  if (found != file.header().end()) return found - file.header().begin();
  const std::optional<int64_t> given = weft::parse_number<int64_t>(name);
  if (!given) return std::nullopt;
  const int64_t number = *given < 0 ? *given + file.columns() + 1 : *given;
  if (number < 1 || number > file.columns()) return std::nullopt;
  return number - 1;
}

namespace {

int64_t require_column(const CsvFile& file, const std::string& name, const char* option) {
  if (const std::optional<int64_t> found = find_column(file, name)) return *found;
  if (file.header().empty())
    fail(ErrorKind::usage,
         "[csv] '{}' has no column '{}' ({}): it has no header and {} columns; give a number from 1 to {}", file.path(),
         name, option, file.columns(), file.columns());
  fail(ErrorKind::usage, "[csv] '{}' has no column '{}' ({}){}", file.path(), name, option,
       suggestion(name, file.header()));
}

}  // namespace

std::vector<int64_t> find_labels(const CsvFile& file, const std::string& label) {
  if (label.empty()) return {file.columns() - 1};
  if (label.find(',') == label.npos || find_column(file, label)) return {require_column(file, label, "label")};
  std::vector<int64_t> labels;
  for (size_t begin = 0; begin <= label.size();) {
    const size_t end = std::min(label.find(',', begin), label.size());
    const std::string name = label.substr(begin, end - begin);
    begin = end + 1;
    const int64_t at = require_column(file, name, "label");
    if (std::find(labels.begin(), labels.end(), at) != labels.end())
      fail(ErrorKind::usage, "[csv] label={} names column '{}' twice; name each once", label, name);
    labels.push_back(at);
  }
  return labels;
}

bool TableEncoding::is_missing(std::string_view text) const {
  return text.empty() || std::find(missing_.begin(), missing_.end(), text) != missing_.end();
}

TableEncoding TableEncoding::learn(const CsvFile& file, std::span<const int64_t> rows, const TableOptions& options) {
  TableEncoding encoding;
  encoding.task_ = options.task;
  encoding.missing_ = options.missing;
  encoding.has_header_ = !file.header().empty();
  encoding.separator_ = file.separator();
  const int64_t columns = file.columns();
  if (columns < 2)
    fail(ErrorKind::data,
         "[csv] '{}' has one column; a table to learn from has a label and something else: name the "
         "separator with separator=...",
         file.path());
  encoding.labels_ = find_labels(file, options.label);
  if (encoding.labels_.size() > 1 && encoding.task_ != "regression")
    fail(ErrorKind::usage,
         "[csv] label={} names {} columns, and a class is told from one; add task=regression to predict their numbers "
         "together, or give one label and leave the others out with ignore=",
         options.label, encoding.labels_.size());
  for (int64_t at = 0; at < columns; ++at) {
    TableColumn& column = encoding.columns_.emplace_back();
    column.name = encoding.has_header_ ? file.header()[static_cast<size_t>(at)] : std::to_string(at + 1);
  }
  for (const int64_t at : encoding.labels_) encoding.columns_[static_cast<size_t>(at)].kind = Kind::label;
  for (const std::string& name : options.ignored) {
    const int64_t at = require_column(file, name, "ignore");
    if (encoding.column(at).kind == Kind::label)
      fail(ErrorKind::usage, "[csv] column '{}' is the label, it cannot be ignored", name);
    encoding.columns_[static_cast<size_t>(at)].kind = Kind::ignored;
  }
  std::vector<bool> forced(static_cast<size_t>(columns));
  for (const std::string& name : options.categories)
    forced[static_cast<size_t>(require_column(file, name, "categories"))] = true;
  encoding.learn_label(file, rows);
  for (int64_t at = 0; at < columns; ++at) encoding.learn_column(file, rows, at, forced[static_cast<size_t>(at)]);
  if (encoding.width() == 0)
    fail(ErrorKind::data, "[csv] '{}' has nothing to learn from beside the label; ignore fewer columns", file.path());
  if (encoding.width() > kMostNumbers)
    fail(ErrorKind::data,
         "[csv] '{}' becomes {} numbers per row; leave columns with many categories out with ignore=...", file.path(),
         encoding.width());
  return encoding;
}

void TableEncoding::learn_label(const CsvFile& file, std::span<const int64_t> rows) {
  if (task_ != "regression") return learn_classes(file, rows, labels_.front());
  for (const int64_t at : labels_) {
    std::vector<double> values;
    for (const int64_t row : rows) values.push_back(read_number(file, row, at, column(at)));
    learn_numbers(file, rows, at, values);
  }
}

void TableEncoding::learn_classes(const CsvFile& file, std::span<const int64_t> rows, int64_t at) {
  const TableColumn& column = columns_[static_cast<size_t>(at)];
  const bool decimal_comma = separator_ != ',';
  std::map<std::string, int64_t, std::less<>> counts;
  for (const int64_t row : rows) {
    const std::string_view text = file.cell(row, at);
    if (is_missing(text)) fail(ErrorKind::data, kNoLabel, file.where(row, at), in_words(column));
    const auto found = counts.find(text);
    if (found != counts.end())
      ++found->second;
    else
      counts.emplace(text, 1);
  }
  for (const auto& [text, count] : counts) classes_.push_back(text);
  if (classes_.size() < 2)
    fail(ErrorKind::data,
         "[csv] '{}': all {} training rows have the label '{}' in {}; choose another with label=COLUMN", file.path(),
         rows.size(), classes_.empty() ? "" : classes_.front(), in_words(column));
  const bool numbers = sort_classes(classes_, decimal_comma);
  const auto value_of = [&](const std::string& text) {
    double value = 0;
    parse_number(text, decimal_comma, value);
    return value;
  };
  const bool fractions = numbers && std::any_of(classes_.begin(), classes_.end(), [&](const std::string& text) {
                           return value_of(text) != std::floor(value_of(text));
                         });
  const bool many = classes_.size() > kFewRows && classes_.size() * 4 > rows.size();
  if (many || (fractions && classes_.size() > kFewRows))
    fail(ErrorKind::data, "[csv] '{}': {} has {} different labels in {} rows; {}", file.path(), in_words(column),
         classes_.size(), rows.size(),
         numbers ? "to predict the number, add task=regression" : "choose another column with label=COLUMN");
}

void TableEncoding::learn_column(const CsvFile& file, std::span<const int64_t> rows, int64_t at,
                                 bool force_categories) {
  TableColumn& column = columns_[static_cast<size_t>(at)];
  if (column.kind == Kind::label || column.kind == Kind::ignored) return;
  std::vector<double> numbers;
  std::vector<int64_t> rows_of_numbers;
  int64_t texts = 0, first_text = -1;
  for (const int64_t row : rows) {
    const std::string_view text = file.cell(row, at);
    double number = 0;
    if (is_missing(text)) continue;
    if (parse_number(text, separator_ != ',', number)) {
      numbers.push_back(number);
      rows_of_numbers.push_back(row);
    } else if (texts++ == 0) {
      first_text = row;
    }
  }
  if (force_categories || (texts > 0 && numbers.empty())) return learn_categories(column, file, rows, at);
  if (texts == 0) {
    column.can_miss = numbers.size() < rows.size();
    learn_numbers(file, rows_of_numbers, at, numbers);
    return;
  }
  const auto count = static_cast<double>(numbers.size());
  const double share = count / (count + static_cast<double>(texts));
  if (numbers.size() >= kFewRows && (share >= kMostlyNumbers || (share > kMoreNumbers && mostly_distinct(numbers))))
    fail(ErrorKind::data,
         "[csv] {}: '{}' is no number, as {} values of {} are; correct it, or add missing={} if it means that "
         "the value is not known, or categories={} if the numbers are names",
         file.where(first_text, at), file.cell(first_text, at), texts == 1 ? "the other" : "most other",
         in_words(column), file.cell(first_text, at), column.name);
  learn_categories(column, file, rows, at);
}

void TableEncoding::learn_numbers(const CsvFile& file, std::span<const int64_t> rows, int64_t at,
                                  std::span<const double> values) {
  TableColumn& column = columns_[static_cast<size_t>(at)];
  double sum = 0, squares = 0, largest = 0;
  size_t largest_at = 0;
  for (size_t index = 0; index < values.size(); ++index) {
    sum += values[index];
    if (std::abs(values[index]) > largest) largest_at = index;
    largest = std::max(largest, std::abs(values[index]));
  }
  const auto count = static_cast<double>(std::max<size_t>(1, values.size()));
  column.mean = sum / count;
  for (const double value : values) squares += (value - column.mean) * (value - column.mean);
  column.deviation = std::sqrt(squares / count);
  // A constant column becomes zeros; what rounding leaves of its spread must not be blown up.
  if (!std::isfinite(column.mean) || !std::isfinite(column.deviation))
    fail(ErrorKind::data,
         "[csv] {}: numbers as large as {} in {} have no mean and deviation; correct them, name them with "
         "missing=, or leave the column out with ignore={}",
         file.where(rows[largest_at], at), file.cell(rows[largest_at], at), in_words(column), column.name);
  if (!(column.deviation > 1e-12 * largest)) column.deviation = 1;
}

void TableEncoding::learn_categories(TableColumn& column, const CsvFile& file, std::span<const int64_t> rows,
                                     int64_t at) {
  column.kind = Kind::category;
  std::map<std::string, int64_t, std::less<>> counts;
  for (const int64_t row : rows) {
    const std::string_view text = is_missing(file.cell(row, at)) ? std::string_view() : file.cell(row, at);
    const auto found = counts.find(text);
    if (found != counts.end())
      ++found->second;
    else
      counts.emplace(text, 1);
    if (static_cast<int64_t>(counts.size()) > kMostCategories)
      fail(ErrorKind::data, "[csv] '{}': {} has more than {} different texts; leave it out with ignore={}", file.path(),
           in_words(column), kMostCategories, column.name);
  }
  for (const auto& [text, count] : counts)
    if (count > 1) column.categories.push_back(text);
}

int64_t TableEncoding::width() const {
  int64_t width = 0;
  for (const TableColumn& column : columns_) width += column.width();
  return width;
}

int64_t TableEncoding::cells() const {
  return std::count_if(columns_.begin(), columns_.end(), [](const TableColumn& column) {
    return column.kind == Kind::number || column.kind == Kind::category;
  });
}

std::vector<int64_t> TableEncoding::match(const CsvFile& file) const {
  std::vector<int64_t> positions(columns_.size(), -1);
  const auto wanted = static_cast<int64_t>(columns_.size());
  if (has_header_ && !file.header().empty()) {
    for (int64_t at = 0; at < wanted; ++at) {
      const TableColumn& column = columns_[static_cast<size_t>(at)];
      const auto found = std::find(file.header().begin(), file.header().end(), column.name);
      if (found != file.header().end())
        positions[static_cast<size_t>(at)] = found - file.header().begin();
      else if (column.kind == Kind::number || column.kind == Kind::category)
        fail(ErrorKind::data, "[csv] '{}' has no {}, which the model was trained with{}", file.path(), in_words(column),
             suggestion(column.name, file.header()));
    }
    return positions;
  }
  const auto labels = static_cast<int64_t>(labels_.size());
  if (file.columns() != wanted && file.columns() != wanted - labels)
    fail(ErrorKind::data, "[csv] '{}' has {} columns, the training data have {}, the {} included; give the same ones",
         file.path(), file.columns(), wanted, labels > 1 ? fmt::format("{} labels", labels) : "label");
  int64_t position = 0;
  for (int64_t at = 0; at < wanted; ++at)
    if (column(at).kind != Kind::label || file.columns() == wanted) positions[static_cast<size_t>(at)] = position++;
  return positions;
}

double TableEncoding::read_number(const CsvFile& file, int64_t row, int64_t position, const TableColumn& column) const {
  double number = 0;
  const std::string_view text = file.cell(row, position);
  if (is_missing(text) && column.kind == Kind::label)
    fail(ErrorKind::data, kNoLabel, file.where(row, position), in_words(column));
  if (is_missing(text) || !parse_number(text, separator_ != ',', number))
    fail(ErrorKind::data, "[csv] {}: '{}' is no number, as {} wants; correct it, or remove the row",
         file.where(row, position), text, in_words(column));
  return number;
}

float TableEncoding::read_standardised(const CsvFile& file, int64_t row, int64_t position,
                                       const TableColumn& column) const {
  const double value = (read_number(file, row, position, column) - column.mean) / column.deviation;
  if (!(std::abs(value) <= kFurthest))
    fail(ErrorKind::data,
         "[csv] {}: {} in {} is too large to reckon with: the training rows have mean {:.4g} and deviation {:.4g}; "
         "correct it, name it with missing=, or remove the row",
         file.where(row, position), file.cell(row, position), in_words(column), column.mean, column.deviation);
  return static_cast<float>(value);
}

bool TableEncoding::begins_with_names(const CsvFile& file) const {
  if (file.rows() < 2) return false;
  const std::vector<int64_t> positions = match(file);
  const auto is_value = [&](int64_t row, size_t at) {
    const std::string_view text = file.cell(row, positions[at]);
    double number = 0;
    return is_missing(text) || parse_number(text, separator_ != ',', number);
  };
  bool has_name = false;
  for (size_t at = 0; at < columns_.size(); ++at) {
    if (columns_[at].kind != Kind::number || positions[at] < 0) continue;
    if (is_value(0, at)) return false;
    has_name = has_name || is_value(1, at);
  }
  return has_name;
}

void TableEncoding::read(const CsvFile& file, int64_t row, std::span<const int64_t> positions, float* cells) const {
  for (size_t at = 0; at < columns_.size(); ++at) {
    const TableColumn& column = columns_[at];
    if (column.kind != Kind::number && column.kind != Kind::category) continue;
    const std::string_view text = file.cell(row, positions[at]);
    if (column.kind == Kind::category) {
      const std::string_view name = is_missing(text) ? std::string_view() : text;
      const auto found = std::lower_bound(column.categories.begin(), column.categories.end(), name);
      const bool known = found != column.categories.end() && *found == name;
      *cells++ = static_cast<float>(known ? found - column.categories.begin()
                                          : static_cast<std::ptrdiff_t>(column.categories.size()));
    } else if (is_missing(text)) {
      *cells++ = std::numeric_limits<float>::quiet_NaN();
    } else {
      *cells++ = read_standardised(file, row, positions[at], column);
    }
  }
}

void TableEncoding::expand(const float* cells, float* out) const {
  for (const TableColumn& column : columns_) {
    if (column.kind == Kind::number) {
      const float value = *cells++;
      const bool missing = std::isnan(value);
      *out++ = missing ? 0 : value;
      if (column.can_miss) *out++ = missing ? 1 : 0;
    } else if (column.kind == Kind::category) {
      const auto index = static_cast<int64_t>(*cells++);
      const int64_t width = column.width();
      for (int64_t at = 0; at < width; ++at) *out++ = at == index ? 1 : 0;
    }
  }
}

int32_t TableEncoding::read_class(const CsvFile& file, int64_t row, int64_t position) const {
  std::string_view text = file.cell(row, position);
  for (;;) {
    const auto found = std::find(classes_.begin(), classes_.end(), text);
    if (found != classes_.end()) return static_cast<int32_t>(found - classes_.begin());
    if (!text.ends_with('.')) break;
    text.remove_suffix(1);
  }
  fail(ErrorKind::data, "[csv] {}: '{}' is no class that the training rows have{}", file.where(row, position),
       file.cell(row, position), suggestion(text, classes_));
}

float TableEncoding::read_value(const CsvFile& file, int64_t row, int64_t position, size_t label) const {
  return read_standardised(file, row, position, column(labels_[label]));
}

}  // namespace weft::data
