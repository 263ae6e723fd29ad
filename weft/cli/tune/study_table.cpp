#include "weft/cli/tune/study_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/format.h"

namespace weft::cli {

using tune::StudySettings;
using tune::StudyTrial;

namespace {

std::string value_text(const KeyValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.4g}", *real);
  return shown(value);
}

/// The best first, then those without results by their numbers.
std::vector<StudyTrial> ranked(const StudySettings& settings, std::vector<StudyTrial> trials) {
  const tune::Objective& objective = settings.objectives.front();
  std::stable_sort(trials.begin(), trials.end(), [&](const StudyTrial& a, const StudyTrial& b) {
    if (a.has_results() != b.has_results()) return a.has_results();
    return a.has_results() && objective.loss(a.results.front()) < objective.loss(b.results.front());
  });
  return trials;
}

/// The numbers of the trials that no other one beats in all objectives; empty where there is one objective.
std::set<int64_t> front_of(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  std::set<int64_t> front;
  if (settings.objectives.size() > 1)
    for (const StudyTrial& trial : best_trials(settings, trials)) front.insert(trial.number);
  return front;
}

constexpr size_t kRemarkBytes = 80;
constexpr const char* kLeftOut = "…";

/// Up to the end of a word.
std::string shortened(const std::string& text) {
  if (text.size() <= kRemarkBytes) return text;
  size_t end = text.rfind(' ', kRemarkBytes);
  if (end == text.npos) end = kRemarkBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;  // within a character
  return text.substr(0, end) + kLeftOut;
}

/// Why it ended as it did, or where it comes from.
std::string remark_on(const StudyTrial& trial) {
  if (!trial.reason.empty()) return trial.reason;
  return trial.parent ? fmt::format("copy of trial {} after {} epochs", *trial.parent, trial.begun) : "";
}

int64_t epochs_of(const StudyTrial& trial) { return trial.curve.empty() ? trial.begun : trial.curve.back().first; }

}  // namespace

std::string objective_in_words(const tune::Objective& objective, double value, const Library& library) {
  if (objective.name == "memory" || objective.name == "size") return human_bytes(value);
  if (objective.name == "parameters") return human_count(value);
  if (objective.name == "seconds" || objective.name == "latency") return human_duration(value);
  const std::string name = objective.name.substr(objective.name.find('_') + 1);
  const MetricEntry* metric = find_entry(library.metrics, name);
  return metric != nullptr ? shown(*metric, value) : fmt::format("{:.4f}", value);
}

void add_values(Table& table, const std::vector<StudyTrial>& trials, const StudyTrial& trial) {
  const std::vector<tune::Stretch> lineage = tune::lineage_of(trials, trial);
  for (const tune::Stretch& stretch : lineage)
    for (const auto& [name, value] : stretch.values)
      table.add_row({lineage.size() == 1 ? name : fmt::format("{}, {}", name, epochs_in_words(stretch)),
                     printable(shown(value))});
}

Table study_table(const StudySettings& settings, const std::vector<StudyTrial>& trials, size_t rows) {
  std::vector<Column> columns = {{"trial", Align::right}, {"state", Align::left}, {"epochs", Align::right}};
  const std::set<int64_t> front = front_of(settings, trials);
  if (!front.empty()) columns.push_back({"front", Align::left});
  for (const tune::Objective& objective : settings.objectives) columns.push_back({objective.name, Align::right});
  for (const tune::Dimension& dimension : settings.space.dimensions())
    columns.push_back({dimension.name, Align::right});
  columns.push_back({"time", Align::right});
  const bool has_remarks =
      std::any_of(trials.begin(), trials.end(), [](const StudyTrial& trial) { return !remark_on(trial).empty(); });
  if (has_remarks) columns.push_back({"remark", Align::left});
  Table table(columns);
  size_t shown_rows = 0;
  for (const StudyTrial& trial : ranked(settings, trials)) {
    if (rows > 0 && shown_rows++ == rows) break;
    std::vector<std::string> cells = {std::to_string(trial.number), name_of(trial.state),
                                      trial.curve.empty() ? "" : std::to_string(epochs_of(trial))};
    if (!front.empty()) cells.emplace_back(front.contains(trial.number) ? "*" : "");
    for (size_t index = 0; index < settings.objectives.size(); ++index)
      cells.push_back(trial.has_results() ? fmt::format("{:.6g}", trial.results[index]) : "");
    for (const tune::Dimension& dimension : settings.space.dimensions())
      cells.push_back(tune::has_value(trial.values, dimension.name)
                          ? value_text(tune::value_of(trial.values, dimension.name))
                          : "");
    cells.push_back(trial.seconds > 0 ? human_duration(trial.seconds) : "");
    if (has_remarks) cells.push_back(shortened(printable(remark_on(trial))));
    table.add_row(std::move(cells));
  }
  return table;
}

std::string study_text(const StudySettings& settings, const std::vector<StudyTrial>& trials, size_t rows) {
  const std::string text = study_table(settings, trials, rows).text();
  return text.find(kLeftOut) == text.npos ? text : text + "--json has the remarks whole\n";
}

std::string study_json(const StudySettings& settings, const std::vector<StudyTrial>& trials,
                       const std::optional<run::Summary>& best) {
  using Json = nlohmann::ordered_json;
  const auto results = [&](const StudyTrial& trial) {
    Json json = Json::object();
    for (size_t index = 0; index < trial.results.size(); ++index)
      json[settings.objectives[index].name] = trial.results[index];
    return json;
  };
  Json list = Json::array();
  for (const StudyTrial& trial : trials) {
    list.push_back({{"trial", trial.number},
                    {"state", name_of(trial.state)},
                    {"values", Json::parse(tune::print_values(trial.values))},
                    {"results", results(trial)},
                    {"epochs", epochs_of(trial)},
                    {"parameters", trial.plan.parameters},
                    {"planned_bytes", trial.plan.memory},
                    {"predicted_seconds", trial.plan.seconds},
                    {"seconds", trial.seconds}});
    if (!trial.reason.empty()) list.back()["reason"] = trial.reason;
    if (trial.parent) list.back()["copy_of"] = {{"trial", *trial.parent}, {"epochs", trial.begun}};
  }
  Json json{{"objectives", Json::array()}, {"searcher", settings.searcher}, {"scheduler", settings.scheduler.name}};
  for (const tune::Objective& objective : settings.objectives)
    json["objectives"].push_back(
        {{"name", objective.name}, {"better", objective.higher_is_better ? "higher" : "lower"}});
  if (const auto trial = best_trial(settings, trials)) {
    json["best"] = {{"trial", trial->number},
                    {"values", Json::parse(tune::print_values(trial->values))},
                    {"results", results(*trial)}};
    const std::vector<tune::Stretch> lineage = tune::lineage_of(trials, *trial);
    if (lineage.size() > 1) {
      json["best"]["schedule"] = Json::array();
      for (const tune::Stretch& stretch : lineage)
        json["best"]["schedule"].push_back({{"trial", stretch.trial},
                                            {"from_epoch", stretch.begin + 1},
                                            {"to_epoch", stretch.end},
                                            {"values", Json::parse(tune::print_values(stretch.values))}});
    }
    if (best) json["best"]["summary"] = Json::parse(run::print_summary(*best));
  }
  if (settings.objectives.size() > 1) json["front"] = front_of(settings, trials);
  json["trials"] = std::move(list);
  return json.dump(2) + "\n";
}

}  // namespace weft::cli
