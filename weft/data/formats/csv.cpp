#include "weft/data/formats/csv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>

#include "weft/base/error.h"
#include "weft/data/dataset/stratified_split.h"
#include "weft/data/dataset/test_split.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

constexpr double kRowSplit = 0.2;

/// Rows as cells: a number per column, expanded to what the model reads when a batch is made.
class TableDataset : public Dataset {
 public:
  TableDataset(DatasetInfo info, TableEncoding encoding, const CsvFile& file, std::span<const int64_t> rows,
               bool with_targets)
      : Dataset(std::move(info)), encoding_(std::move(encoding)), size_(static_cast<int64_t>(rows.size())) {
    const std::vector<int64_t> positions = encoding_.match(file);
    const std::vector<int64_t>& labels = encoding_.labels();
    for (const int64_t label : labels)
      if (with_targets && positions[static_cast<size_t>(label)] < 0)
        fail(ErrorKind::data, "[csv] '{}' has no label: column '{}' is missing; `weft predict` needs none", file.path(),
             encoding_.column(label).name);
    cells_.resize(rows.size() * static_cast<size_t>(encoding_.cells()));
    targets_.resize(rows.size() * labels.size());
    float* cells = cells_.data();
    for (size_t at = 0; at < rows.size(); ++at, cells += encoding_.cells()) {
      encoding_.read(file, rows[at], positions, cells);
      if (!with_targets) continue;
      for (size_t label = 0; label < labels.size(); ++label) {
        const int64_t position = positions[static_cast<size_t>(labels[label])];
        Target& target = targets_[at * labels.size() + label];
        if (encoding_.task() == "regression")
          target.value = encoding_.read_value(file, rows[at], position, label);
        else
          target.index = encoding_.read_class(file, rows[at], position);
      }
    }
  }

  int64_t size() const override { return size_; }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    encoding_.expand(cells_.data() + key.index * encoding_.cells(), reinterpret_cast<float*>(destination.data()));
  }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    const size_t count = encoding_.labels().size();
    std::memcpy(destination.data(), &targets_[static_cast<size_t>(key.index) * count], count * sizeof(Target));
  }

 private:
  union Target {
    int32_t index = 0;
    float value;
  };
  TableEncoding encoding_;
  int64_t size_;
  std::vector<float> cells_;
  std::vector<Target> targets_;  // a row's beside each other
};

SpecOptions options_of(const DataSpec& spec) {
  return SpecOptions(spec, {"label", "task", "test", "split", "seed", "header", "separator", "skip", "test_skip",
                            "missing", "categories", "ignore", "unlabelled"});
}

char separator_of(const SpecOptions& options) {
  const std::string given = options.choice(
      "separator", "auto", {"auto", ",", ";", "|", "\t", " ", "comma", "semicolon", "pipe", "tab", "space"});
  static const std::map<std::string, char> named = {{"auto", 0},   {"comma", ','}, {"semicolon", ';'},
                                                    {"pipe", '|'}, {"tab", '\t'},  {"space", kBlanks}};
  const auto found = named.find(given);
  return found != named.end() ? found->second : given[0];
}

TableOptions table_options(const SpecOptions& options) {
  TableOptions table;
  table.label = options.text("label", "");
  table.task = options.choice("task", "classification", {"classification", "regression"});
  std::vector<std::string> usual(std::begin(kMissingWords), std::end(kMissingWords));
  usual.insert(usual.end(), std::begin(kGuessedMissingWords), std::end(kGuessedMissingWords));
  table.missing = options.list("missing").value_or(std::move(usual));
  table.categories = options.list("categories").value_or(std::vector<std::string>());
  table.drops_unlabelled = options.choice("unlabelled", "error", {"error", "drop"}) == "drop";
  table.ignored = options.list("ignore").value_or(std::vector<std::string>());
  return table;
}

/// Numbers, as columns without a name go by.
bool are_numbers(const std::string& text) {
  return !text.empty() && text.find_first_not_of("-,0123456789") == std::string::npos;
}

/// `apart`: of the file with the test rows.
CsvOptions csv_options(const SpecOptions& options, const TableEncoding* trained, bool apart) {
  constexpr int64_t kMost = 1'000'000'000;
  const int64_t skip = options.integer("skip", 0, 0, kMost), test_skip = options.integer("test_skip", skip, 0, kMost);
  CsvOptions csv{.separator = separator_of(options), .skip = apart ? test_skip : skip, .wanted_name = {}};
  if (apart) csv.skip_option = "test_skip";
  const std::string header = options.choice("header", "auto", {"auto", "yes", "no"});
  csv.header = header == "yes" ? Header::yes : header == "no" ? Header::no : Header::automatic;
  // Known columns decide about the header, not the look of its first row.
  if (trained != nullptr && csv.header == Header::automatic) csv.header = Header::no;
  if (trained != nullptr && csv.separator == 0) csv.separator = trained->separator();
  if (const std::string label = options.text("label", ""); !are_numbers(label)) csv.wanted_name = label;
  return csv;
}

/// What the column would be named were the first row the header.
std::string name_in(const CsvFile& file, int64_t column) {
  const std::string_view cell = file.cell(0, column);
  return cell.empty() ? unnamed_column(column) : std::string(cell);
}

/// The first row of a file that is read for a trained model is its header where it names the model's columns or, of a
/// model trained without names, where texts stand over columns of numbers. Returns a line for the user where one of
/// both has no names, so that columns go by position; else empty.
std::string find_header(CsvFile& file, const SpecOptions& options, const TableEncoding& trained) {
  const bool is_automatic = options.text("header", "auto") == "auto";
  if (!trained.has_header()) {
    if (is_automatic && trained.begins_with_names(file)) file.set_header(true);
    if (file.header().empty()) return "";
    return fmt::format(
        "'{}': its first row names the columns; the model was trained on a table without names, so that they are taken "
        "in their order",
        file.path());
  }
  int64_t named = 0;
  for (int64_t column = 0; column < file.columns(); ++column)
    named += std::any_of(trained.columns().begin(), trained.columns().end(),
                         [&](const TableColumn& known) { return known.name == name_in(file, column); });
  if (is_automatic && 2 * named > file.columns()) file.set_header(true);
  if (!file.header().empty()) return "";
  return fmt::format("'{}' has no row with the names of its columns; they are taken in the order of the training data",
                     file.path());
}

std::vector<int64_t> rows_of(const CsvFile& file, const TestSplit& test, Split split, const TableOptions& table) {
  std::vector<int64_t> rows(static_cast<size_t>(file.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  if (table.drops_unlabelled) {
    const std::vector<int64_t> labels = find_labels(file, table.label);
    const auto is_unlabelled = [&](int64_t row) {
      return std::any_of(labels.begin(), labels.end(), [&](int64_t label) {
        const std::string_view text = file.cell(row, label);
        return text.empty() || std::find(table.missing.begin(), table.missing.end(), text) != table.missing.end();
      });
    };
    std::erase_if(rows, is_unlabelled);
  }
  if (!test.divides(split)) return rows;
  std::vector<int32_t> strata(rows.size(), 0);
  if (table.task == "classification") {
    const int64_t label = table.label.empty() ? file.columns() - 1 : find_column(file, table.label).value_or(0);
    std::vector<std::string_view> labels;
    for (const int64_t row : rows) labels.push_back(file.cell(row, label));
    strata = strata_of(labels);
  }
  keep_members(rows, test.members(strata, split, file.path(), "rows"));
  return rows;
}

/// Whether the model would learn from what looks like the numbers of the rows: whole and rising.
bool reads_an_index(const CsvFile& file, const TableEncoding& encoding) {
  const TableColumn& first = encoding.columns().front();
  if (file.header().empty() || first.name != unnamed_column(0) || first.kind != TableColumn::Kind::number) return false;
  double last = -std::numeric_limits<double>::infinity();
  for (int64_t row = 0; row < file.rows(); ++row) {
    double number = 0;
    if (!parse_number(file.cell(row, 0), false, number) || number != std::floor(number) || number <= last) return false;
    last = number;
  }
  return true;
}

/// Of the first column of categories that are mostly names of single rows, as numbers with units are; or empty.
std::string note_of_single_texts(const CsvFile& file, std::span<const int64_t> rows, const TableEncoding& encoding) {
  constexpr int64_t kFewest = 20;
  for (int64_t at = 0; at < file.columns(); ++at) {
    const TableColumn& column = encoding.columns()[static_cast<size_t>(at)];
    if (column.kind != TableColumn::Kind::category) continue;
    int64_t single = 0, texts = 0;
    std::string_view example;
    for (const int64_t row : rows) {
      const std::string_view text = file.cell(row, at);
      if (encoding.is_missing(text)) continue;
      ++texts;
      if (std::binary_search(column.categories.begin(), column.categories.end(), text)) continue;
      if (single++ == 0) example = text;
    }
    if (texts >= kFewest && 2 * single > texts)
      return fmt::format(
          "'{}': {} of {} texts in column '{}', such as '{}', stand there once and tell the model nothing; write them "
          "as plain numbers if they are some, or leave the column out with ignore={}",
          file.path(), single, texts, column.name, example, column.name);
  }
  return "";
}

/// Which words were taken for "not known" that nobody has named, and how often; or empty.
std::string note_of_guessed_missing(const CsvFile& file, std::span<const int64_t> rows) {
  std::map<std::string_view, int64_t> counts;
  for (const int64_t row : rows)
    for (int64_t column = 0; column < file.columns(); ++column) {
      const std::string_view text = file.cell(row, column);
      if (std::find(std::begin(kGuessedMissingWords), std::end(kGuessedMissingWords), text) !=
          std::end(kGuessedMissingWords))
        ++counts[text];
    }
  std::string words;
  for (const auto& [word, count] : counts)
    words += fmt::format("{}'{}' ({} times)", words.empty() ? "" : ", ", word, count);
  if (words.empty()) return "";
  return fmt::format("'{}': {} is taken for a value that is not known; missing=WORD,WORD names other words",
                     file.path(), words);
}

DatasetInfo info_of(const TableEncoding& encoding, const std::string& path) {
  DatasetInfo info;
  info.name = printable_utf8(std::filesystem::path(path).stem().string());
  info.sample_shape = Shape{encoding.width()};
  info.task = encoding.task();
  info.sample_dtype = DType::f32;
  info.encoding = encoding.to_json();
  if (encoding.task() == "regression") {
    info.classes = static_cast<int64_t>(encoding.labels().size());
    info.target_dtype = DType::f32;
    info.target_shape = Shape{info.classes};
    for (const int64_t at : encoding.labels()) {
      const TableColumn& label = encoding.column(at);
      info.class_names.push_back(label.name);
      info.targets.mean.push_back(label.mean);
      info.targets.deviation.push_back(label.deviation);
    }
  } else {
    info.classes = static_cast<int64_t>(encoding.classes().size());
    info.class_names = encoding.classes();
  }
  return info;
}

}  // namespace

bool csv_has_test_split(const DataSpec& spec) { return TestSplit(options_of(spec), kRowSplit).exists(); }

std::unique_ptr<Dataset> open_csv(const DataSpec& spec, Split split, const std::string& encoding) {
  const SpecOptions options = options_of(spec);
  const TestSplit test(options, kRowSplit);
  if (options.find("test_skip") && !test.file())
    fail(ErrorKind::usage, "[csv] test_skip={} is of the file with the test rows: add test=FILE, or say skip=N",
         *options.find("test_skip"));
  const TableOptions table = table_options(options);
  if (encoding.empty() && split == Split::test) {
    const std::string learned = open_csv(spec, Split::train, "")->info().encoding;
    return open_csv(spec, split, learned);
  }
  std::optional<TableEncoding> known;
  if (!encoding.empty()) known = TableEncoding::from_json(encoding);
  const bool apart = split == Split::test && test.file();
  const std::string path = apart ? *test.file() : spec.argument;
  // The rows that weft sets aside are rows of the file that the encoding was learned from, header and all.
  const bool same_file = !known || !(apart || split == Split::all);
  CsvFile file(path, csv_options(options, same_file ? nullptr : &*known, apart));
  const std::string by_position = same_file ? "" : find_header(file, options, *known);
  const std::vector<int64_t> rows = rows_of(file, test, split, table);
  const bool learns = !known;
  if (learns) known = TableEncoding::learn(file, rows, table);
  DatasetInfo info = info_of(*known, spec.argument);
  info.note = by_position;
  if (learns && reads_an_index(file, *known))
    info.note = fmt::format(
        "the first column of '{}' has no name, as the row numbers that pandas writes; ignore=1 leaves it out", path);
  if (const std::string single = learns ? note_of_single_texts(file, rows, *known) : ""; !single.empty())
    info.note += (info.note.empty() ? "" : "; ") + single;
  if (const std::string guessed = learns && !options.find("missing") ? note_of_guessed_missing(file, rows) : "";
      !guessed.empty())
    info.note += (info.note.empty() ? "" : "; ") + guessed;
  if (const int64_t dropped = file.rows() - static_cast<int64_t>(rows.size());
      learns && table.drops_unlabelled && !test.divides(split) && dropped > 0)
    info.note +=
        fmt::format("{}'{}': {} rows without a label are left out", info.note.empty() ? "" : "; ", path, dropped);
  return std::make_unique<TableDataset>(std::move(info), std::move(*known), file, rows, true);
}

std::unique_ptr<Dataset> open_csv_features(const DataSpec& spec, const std::string& encoding) {
  const SpecOptions options = options_of(spec);
  TableEncoding known = TableEncoding::from_json(encoding);
  CsvFile file(spec.argument, csv_options(options, &known, /*apart=*/false));
  const std::string by_position = find_header(file, options, known);
  std::vector<int64_t> rows(static_cast<size_t>(file.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  DatasetInfo info = info_of(known, spec.argument);
  info.note = by_position;
  return std::make_unique<TableDataset>(std::move(info), std::move(known), file, rows, false);
}

}  // namespace weft::data
