#include "weft/report/class_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/files.h"
#include "weft/base/table.h"
#include "weft/data/dataset/class_names.h"

namespace weft::report {

namespace {

constexpr int64_t kMostInTable = 20;  // classes whose matrix fits into a terminal
constexpr size_t kWorstShown = 10;    // of more classes
constexpr int64_t kMostInJson = 100;  // classes: 10,000 cells
constexpr size_t kPairsInJson = 20;

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.2f}", 100 * *share) : "-"; }

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

/// All of them, or of many the ones of lowest recall.
std::vector<int64_t> shown_classes(const train::ConfusionMatrix& matrix) {
  std::vector<int64_t> labels;
  for (int64_t label = 0; label < matrix.classes(); ++label)
    if (matrix.classes() <= kMostInTable || matrix.scores(label).samples > 0) labels.push_back(label);
  if (matrix.classes() <= kMostInTable) return labels;
  std::stable_sort(labels.begin(), labels.end(),
                   [&](int64_t a, int64_t b) { return matrix.scores(a).recall < matrix.scores(b).recall; });
  labels.resize(std::min(labels.size(), kWorstShown));
  return labels;
}

std::string score_table(const ClassReport& report) {
  const train::ConfusionMatrix& matrix = report.matrix;
  Table table({{"class"},
               {"samples", Align::right},
               {"precision %", Align::right},
               {"recall %", Align::right},
               {"F1 %", Align::right}});
  for (const int64_t label : shown_classes(matrix)) {
    const train::ClassScores scores = matrix.scores(label);
    table.add_row({report.name(label), std::to_string(scores.samples), percent(scores.precision),
                   percent(scores.recall), percent(scores.f1)});
  }
  const train::MeanScores mean = matrix.mean_scores();
  table.add_rule();
  table.add_row({"mean of classes", "", percent(mean.precision), percent(mean.recall), percent(mean.f1)});
  return table.text();
}

std::string matrix_table(const ClassReport& report) {
  const int64_t classes = report.matrix.classes();
  std::vector<Column> columns{{"true class, taken for:"}};
  for (int64_t predicted = 0; predicted < classes; ++predicted)
    columns.push_back({fmt::format("[{}]", predicted), Align::right});
  Table table(columns);
  for (int64_t label = 0; label < classes; ++label) {
    std::vector<std::string> cells{fmt::format("[{}] {}", label, report.name(label))};
    for (int64_t predicted = 0; predicted < classes; ++predicted) {
      const int64_t count = report.matrix.count(label, predicted);
      cells.push_back(count == 0 ? "." : std::to_string(count));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::string pair_table(const ClassReport& report) {
  Table table({{"true class"}, {"taken for"}, {"samples", Align::right}, {"of the class %", Align::right}});
  for (const train::Confusion& pair : report.matrix.most_confused(kWorstShown)) {
    const auto samples = static_cast<double>(report.matrix.scores(pair.label).samples);
    table.add_row({report.name(pair.label), report.name(pair.predicted), std::to_string(pair.count),
                   percent(static_cast<double>(pair.count) / samples)});
  }
  return table.text();
}

}  // namespace

std::string ClassReport::name(int64_t label) const { return data::class_name(names, label); }

std::string ClassReport::text() const {
  if (matrix.classes() <= kMostInTable) return score_table(*this) + "\n" + matrix_table(*this);
  return fmt::format(
      "the {} classes of lowest recall, of {}:\n{}\nthe most confused pairs (--confusion FILE writes all):\n{}",
      shown_classes(matrix).size(), matrix.classes(), score_table(*this), pair_table(*this));
}

void ClassReport::add_to(nlohmann::ordered_json& root) const {
  using nlohmann::ordered_json;
  const auto number = [](const std::optional<double>& value) { return value ? ordered_json(*value) : ordered_json(); };
  const train::MeanScores mean = matrix.mean_scores();
  root["mean_precision"] = mean.precision;
  root["mean_recall"] = mean.recall;
  root["mean_f1"] = mean.f1;
  auto classes = ordered_json::array(), pairs = ordered_json::array(), rows = ordered_json::array();
  for (int64_t label = 0; label < matrix.classes(); ++label) {
    const train::ClassScores scores = matrix.scores(label);
    classes.push_back({{"class", label},
                       {"name", name(label)},
                       {"samples", scores.samples},
                       {"predicted", scores.predicted},
                       {"precision", number(scores.precision)},
                       {"recall", number(scores.recall)},
                       {"f1", number(scores.f1)}});
    if (matrix.classes() > kMostInJson) continue;
    auto row = ordered_json::array();
    for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted)
      row.push_back(matrix.count(label, predicted));
    rows.push_back(std::move(row));
  }
  for (const train::Confusion& pair : matrix.most_confused(kPairsInJson))
    pairs.push_back({{"label", pair.label}, {"predicted", pair.predicted}, {"count", pair.count}});
  root["classes"] = std::move(classes);
  root["most_confused"] = std::move(pairs);
  if (!rows.empty()) root["confusion_matrix"] = std::move(rows);
}

void ClassReport::write_csv(const std::filesystem::path& path) const {
  AtomicFile file(path);
  std::string line = "label";
  const auto end_line = [&] {
    line += "\n";
    file.write(line.data(), line.size());
  };
  for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted) line += "," + quoted(name(predicted));
  end_line();
  for (int64_t label = 0; label < matrix.classes(); ++label) {
    line = quoted(name(label));
    for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted)
      line += fmt::format(",{}", matrix.count(label, predicted));
    end_line();
  }
  file.commit();
}

}  // namespace weft::report
