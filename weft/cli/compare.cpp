// weft compare: what differs between the recipes of runs, and how they ended.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/real_number.h"
#include "weft/run/metrics_history.h"
#include "weft/run/run_directory.h"
#include "weft/run/summary.h"
#include "weft/spec/recipe_keys.h"

namespace weft::cli {

namespace {

using nlohmann::ordered_json;

struct CompareOptions {
  std::vector<std::string> runs;
  double accuracy = 0;  // in percent; 0: what all have reached
  bool json = false;
};

struct ComparedRun {
  std::string path;
  spec::RunSpec spec;
  std::optional<run::Summary> summary;  // none while it trains
  run::MetricsHistory history;
};

ComparedRun read_compared_run(const Library& library, const std::string& path) {
  const run::RunDirectory directory = run::RunDirectory::open(path);
  ComparedRun run{path, directory.read_spec(library), {}, run::read_metrics(directory.metrics())};
  std::error_code code;
  if (std::filesystem::exists(directory.summary(), code))
    run.summary = run::parse_summary(read_text(directory.summary()));
  return run;
}

std::string text_of(const KeyValue& value) {
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return fmt::format("{}", fmt::join(*list, ", "));
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return shown(value);
}

/// Recipe keys with their value in each run, for those that are not the same in all.
std::vector<std::pair<std::string, std::vector<std::string>>> differences(const Library& library,
                                                                          std::vector<ComparedRun>& runs) {
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  const auto add = [&](const std::string& key, std::vector<std::string> values) {
    const bool differ =
        std::any_of(values.begin(), values.end(), [&](const auto& value) { return value != values[0]; });
    if (differ) rows.emplace_back(key, std::move(values));
  };
  // A group that one run has not got shows as one that matches nothing.
  std::set<std::string> groups;
  for (const ComparedRun& run : runs)
    for (const auto& [name, group] : run.spec.optimizer.groups) groups.insert(name);
  for (ComparedRun& run : runs)
    for (const std::string& name : groups) run.spec.optimizer.groups.try_emplace(name);
  // Likewise a key that no member holds.
  for (ComparedRun& run : runs)
    for (const ComparedRun& other : runs) spec::add_own_keys(run.spec, other.spec, library);
  std::vector<std::vector<spec::BoundKey>> keys;
  for (ComparedRun& run : runs) keys.push_back(spec::bind_keys(run.spec, library));
  std::vector<std::string> option_names;
  for (const ComparedRun& run : runs)
    for (const auto& [name, value] : run.spec.model.options)
      if (std::find(option_names.begin(), option_names.end(), name) == option_names.end()) option_names.push_back(name);
  for (size_t index = 0; index < keys[0].size(); ++index) {
    std::vector<std::string> values;
    for (const auto& of_run : keys) values.push_back(text_of(spec::value_at(of_run[index].place)));
    add(keys[0][index].name, std::move(values));
  }
  for (const std::string& name : option_names) {
    std::vector<std::string> values;
    for (const ComparedRun& run : runs) {
      const auto found = run.spec.model.options.find(name);
      values.push_back(found == run.spec.model.options.end() ? "" : found->second);
    }
    add("model." + name, std::move(values));
  }
  return rows;
}

/// What chose the checkpoint `best`, where the run has a validation part; else the test data.
std::string deciding_accuracy(const ComparedRun& run) {
  return run.history.by_epoch.contains("validation_accuracy") ? "validation_accuracy" : "test_accuracy";
}

std::optional<double> best_accuracy(const ComparedRun& run) {
  const auto found = run.history.by_epoch.find(deciding_accuracy(run));
  std::optional<double> best;
  if (found == run.history.by_epoch.end()) return best;
  for (const double value : found->second.values)
    if (value >= best.value_or(0)) best = value;  // false for NaN
  return best;
}

/// Of the last epoch that measured it.
std::optional<double> last_of(const ComparedRun& run, const std::string& metric) {
  const auto found = run.history.by_epoch.find(metric);
  if (found == run.history.by_epoch.end()) return std::nullopt;
  const std::vector<double>& values = found->second.values;
  const auto last = std::find_if(values.rbegin(), values.rend(), [](double value) { return std::isfinite(value); });
  return last == values.rend() ? std::nullopt : std::optional(*last);
}

/// What epochs measured on the validation and the test part beside accuracies and the test loss, which have rows of
/// their own: "validation_loss", "test_rmse".
std::set<std::string> other_metrics(const std::vector<ComparedRun>& runs) {
  std::set<std::string> names;
  for (const ComparedRun& run : runs) {
    if (run.summary)
      for (const MetricValue& metric : run.summary->test_metrics)
        if (metric.value && metric.name != "accuracy") names.insert("test_" + metric.name);
    for (const auto& [name, curve] : run.history.by_epoch) {
      const bool is_measured = name.starts_with("validation_") || name.starts_with("test_");
      if (is_measured && !name.ends_with("_accuracy") && name != "test_loss" && last_of(run, name)) names.insert(name);
    }
  }
  return names;
}

/// "36910 rows/s" of the last epoch, which knows what it counts: "rows_per_second".
std::string recorded_speed(const ComparedRun& run) {
  constexpr std::string_view kEnd = "_per_second";
  for (const auto& [name, curve] : run.history.by_epoch)
    if (const std::optional<double> rate = name.ends_with(kEnd) ? last_of(run, name) : std::nullopt)
      return fmt::format("{:.0f} {}/s", *rate, name.substr(0, name.size() - kEnd.size()));
  return "-";
}

/// The highest accuracy, in whole tenths of a percent, that every run has reached; nullopt where one has none.
std::optional<double> common_accuracy(const std::vector<ComparedRun>& runs) {
  double lowest = 1;
  for (const ComparedRun& run : runs) {
    const std::optional<double> best = best_accuracy(run);
    if (!best) return std::nullopt;
    lowest = std::min(lowest, *best);
  }
  return static_cast<double>(static_cast<int64_t>(lowest * 1000)) / 1000;
}

/// Wall time, evaluation included, after which the accuracy was first reached.
std::optional<double> seconds_to(const ComparedRun& run, double accuracy) {
  const auto accuracies = run.history.by_epoch.find(deciding_accuracy(run));
  const auto seconds = run.history.by_epoch.find("train_seconds");
  if (accuracies == run.history.by_epoch.end() || seconds == run.history.by_epoch.end()) return std::nullopt;
  const size_t count = std::min(accuracies->second.values.size(), seconds->second.values.size());
  for (size_t index = 0; index < count; ++index)
    if (accuracies->second.values[index] >= accuracy) return seconds->second.values[index];
  return std::nullopt;
}

void print_json(const std::vector<ComparedRun>& runs,
                const std::vector<std::pair<std::string, std::vector<std::string>>>& different,
                const std::optional<double>& accuracy) {
  ordered_json root = ordered_json::array();
  for (size_t index = 0; index < runs.size(); ++index) {
    ordered_json keys = ordered_json::object();
    for (const auto& [key, values] : different) keys[key] = values[index];
    ordered_json row = {{"run", runs[index].path}, {"differences", keys}, {"summary", nullptr}};
    if (runs[index].summary) row["summary"] = ordered_json::parse(run::print_summary(*runs[index].summary));
    row["last_epoch"] = nullptr;
    for (const auto& [name, curve] : runs[index].history.by_epoch)
      if (const std::optional<double> value = last_of(runs[index], name)) row["last_epoch"][name] = *value;
    const std::optional<double> seconds = accuracy ? seconds_to(runs[index], *accuracy) : std::nullopt;
    row["accuracy"] = accuracy ? ordered_json(*accuracy) : ordered_json();
    row["seconds_to_accuracy"] = seconds ? ordered_json(*seconds) : ordered_json();
    root.push_back(std::move(row));
  }
  fmt::print("{}\n", root.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

class ResultTable {
 public:
  explicit ResultTable(const std::vector<ComparedRun>& runs) : runs_(runs), table_(columns(runs)) {}
  void add(const std::string& title, const std::function<std::string(const ComparedRun&)>& cell) {
    std::vector<std::string> row = {title};
    for (const ComparedRun& run : runs_) row.push_back(cell(run));
    table_.add_row(std::move(row));
  }
  /// A figure of the summary, "-" where the run has none yet.
  void add_result(const std::string& title, const std::function<std::string(const run::Summary&)>& cell) {
    add(title, [&](const ComparedRun& run) { return run.summary ? cell(*run.summary) : "-"; });
  }
  void add_row(std::vector<std::string> cells) { table_.add_row(std::move(cells)); }
  void add_rule() { table_.add_rule(); }
  std::string text() const { return table_.text(); }

 private:
  static std::vector<Column> columns(const std::vector<ComparedRun>& runs) {
    std::vector<Column> result = {{"", Align::left}};
    for (const ComparedRun& run : runs) result.push_back({run.path, Align::right});
    return result;
  }
  const std::vector<ComparedRun>& runs_;
  Table table_;
};

void print_table(const std::vector<ComparedRun>& runs,
                 const std::vector<std::pair<std::string, std::vector<std::string>>>& different,
                 const std::optional<double>& accuracy) {
  ResultTable table(runs);
  for (const auto& [key, values] : different) {
    std::vector<std::string> row = {key};
    row.insert(row.end(), values.begin(), values.end());
    table.add_row(std::move(row));
  }
  if (different.empty()) fmt::print("The recipes are the same.\n");
  table.add_rule();
  using run::Summary;
  table.add_result("parameters", [](const Summary& s) { return human_count(static_cast<double>(s.parameters)); });
  // Of a run that has not ended, what its last epoch measured.
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{:.4f}", *value) : "-"; };
  const auto recorded = [](const ComparedRun& run, const std::optional<double>& of_summary, const std::string& metric) {
    return run.summary ? of_summary : last_of(run, metric);
  };
  const bool validates = std::any_of(
      runs.begin(), runs.end(), [](const ComparedRun& run) { return deciding_accuracy(run) == "validation_accuracy"; });
  table.add("state", [](const ComparedRun& run) {
    const std::optional<double> epoch = last_of(run, "epoch");
    const std::string done = fmt::format("{:.0f} of {} epochs", epoch.value_or(0), run.spec.epochs);
    return run.summary ? (run.summary->ended.empty() ? "finished" : "ended by " + run.summary->ended) : done;
  });
  table.add(validates ? "best accuracy" : "best test accuracy", [&](const ComparedRun& run) {
    const std::string part = deciding_accuracy(run) == "test_accuracy" ? " (test)" : " (validation)";
    return percent(best_accuracy(run)) + (validates ? part : "");
  });
  table.add("test accuracy", [&](const ComparedRun& run) {
    return percent(recorded(run, run.summary ? run.summary->test_metric("accuracy") : std::nullopt, "test_accuracy"));
  });
  table.add("test loss", [&](const ComparedRun& run) {
    return number(recorded(run, run.summary ? run.summary->test_loss : std::nullopt, "test_loss"));
  });
  for (const std::string& metric : other_metrics(runs)) {
    std::string title = metric;
    std::replace(title.begin(), title.end(), '_', ' ');
    table.add(title, [&](const ComparedRun& run) {
      const bool is_of_test = metric.starts_with("test_");
      const std::optional<double> of_summary =
          run.summary && is_of_test ? run.summary->test_metric(metric.substr(5)) : std::nullopt;
      const std::optional<double> value = of_summary ? of_summary : last_of(run, metric);
      return value ? fmt::format("{:.4g}", *value) : "-";
    });
  }
  table.add("train loss", [&](const ComparedRun& run) {
    return number(recorded(run, run.summary ? run.summary->train_loss : std::nullopt, "train_loss"));
  });
  table.add("train time", [&](const ComparedRun& run) {
    const std::optional<double> seconds =
        run.summary ? std::optional(run.summary->train_seconds) : last_of(run, "train_seconds");
    return seconds ? human_duration(*seconds) : "-";
  });
  if (accuracy)
    table.add(fmt::format("time to {:.1f} %", 100 * *accuracy), [&](const ComparedRun& run) {
      const std::optional<double> seconds = seconds_to(run, *accuracy);
      return seconds ? human_duration(*seconds) : "-";
    });
  table.add("speed", [](const ComparedRun& run) {
    if (!run.summary) return recorded_speed(run);
    return fmt::format("{:.0f} {}/s", run.summary->items_per_second, run.summary->item);
  });
  table.add_result("memory planned",
                   [](const Summary& s) { return human_bytes(static_cast<double>(s.planned_total_bytes)); });
  table.add_result("memory measured",
                   [](const Summary& s) { return human_bytes(static_cast<double>(s.rss_growth_bytes)); });
  fmt::print("{}", table.text());
}

int compare_command(const Library& library, const CompareOptions& options) {
  std::vector<ComparedRun> runs;
  for (const std::string& path : options.runs) runs.push_back(read_compared_run(library, path));
  const auto different = differences(library, runs);
  const std::optional<double> accuracy =
      options.accuracy > 0 ? std::optional<double>(options.accuracy / 100) : common_accuracy(runs);
  if (options.json)
    print_json(runs, different, accuracy);
  else
    print_table(runs, different, accuracy);
  return 0;
}

}  // namespace

void add_compare(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Set runs side by side: what differs, and how they ended");
  command->add_option("RUN", options->runs, "Two or more run directories")
      ->type_name("RUN")
      ->required()
      ->expected(2, 1000);
  command
      ->add_option("--accuracy", options->accuracy,
                   "Time to this test accuracy, in percent; default: the highest that all have reached")
      ->check(real_number_in(0, 100));
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return compare_command(library, *options); }; });
}

}  // namespace weft::cli
