#include "weft/tune/study/objective.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/names.h"
#include "weft/base/parse_number.h"
#include "weft/step/monitor.h"

namespace weft::tune {

namespace {

const std::vector<std::string>& costs() {
  static const std::vector<std::string> names = {"parameters", "memory", "size", "latency", "seconds"};
  return names;
}

std::vector<std::string> known_metrics(const Entries& entries) {
  std::vector<std::string> known = {"train_loss", "train_accuracy", "validation_loss"};
  for (const MetricEntry& metric : entries.metrics) known.push_back("validation_" + metric.name);
  return known;
}

}  // namespace

bool needs_latency(const std::vector<Objective>& objectives) {
  return std::any_of(objectives.begin(), objectives.end(), [](const auto& one) { return one.name == "latency"; });
}

bool needs_deployment(const std::vector<Objective>& objectives) {
  return needs_latency(objectives) ||
         std::any_of(objectives.begin(), objectives.end(), [](const auto& one) { return one.name == "size"; });
}

bool Objective::is_metric() const { return std::find(costs().begin(), costs().end(), name) == costs().end(); }

std::vector<Objective> parse_objectives(const std::string& text, const Entries& entries) {
  std::vector<std::string> known = known_metrics(entries);
  known.insert(known.end(), costs().begin(), costs().end());
  std::vector<Objective> objectives;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    Objective objective{text.substr(begin, end - begin)};
    if (objective.name.starts_with("test_"))
      fail(ErrorKind::usage, "--objective {}: the test data are measured once, for the winner; search by validation_{}",
           text, objective.name.substr(5));
    if (std::find(known.begin(), known.end(), objective.name) == known.end())
      fail(ErrorKind::usage, "--objective {}: nothing measures '{}'{}", text, objective.name,
           suggestion(objective.name, known));
    if (std::any_of(objectives.begin(), objectives.end(), [&](const auto& one) { return one.name == objective.name; }))
      fail(ErrorKind::usage, "--objective {}: '{}' stands there twice", text, objective.name);
    objective.higher_is_better = objective.is_metric() && step::higher_is_better(objective.name, entries);
    objectives.push_back(std::move(objective));
    begin = end + 1;
  }
  if (!objectives.front().is_metric())
    fail(ErrorKind::usage, "--objective {}: the first objective is a metric, such as validation_accuracy, not '{}'",
         text, objectives.front().name);
  return objectives;
}

std::string print_objectives(const std::vector<Objective>& objectives) {
  std::string text;
  for (const Objective& objective : objectives) text += (text.empty() ? "" : ",") + objective.name;
  return text;
}

double Constraint::value(const TrialPlan& plan) const {
  return static_cast<double>(name == "memory" ? plan.memory : plan.parameters);
}

std::string Constraint::in_words(const TrialPlan& plan) const {
  return fmt::format("{} {}", name, name == "memory" ? human_bytes(value(plan)) : human_count(value(plan)));
}

namespace {

std::string without_blanks(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t'; });
  return text;
}

/// "100k", "1.5M"
std::optional<double> parse_count(const std::string& text) {
  const std::pair<char, double> units[] = {{'k', 1e3}, {'M', 1e6}, {'G', 1e9}};
  for (const auto& [unit, factor] : units)
    if (!text.empty() && text.back() == unit) {
      const std::optional<double> number = parse_number<double>(text.substr(0, text.size() - 1));
      return number ? std::optional(*number * factor) : std::nullopt;
    }
  return parse_number<double>(text);
}

}  // namespace

Constraint parse_constraint(const std::string& text) {
  const size_t sign = text.find_first_of("<>");
  const std::string name = without_blanks(text.substr(0, sign));
  const std::vector<std::string> names = {"memory", "parameters"};
  if (sign == text.npos || sign + 1 >= text.size() || text[sign + 1] != '=')
    fail(ErrorKind::usage, "--constraint '{}': wants NAME <= BOUND, such as 'memory <= 800MB' or 'parameters <= 100k'",
         text);
  if (std::find(names.begin(), names.end(), name) == names.end())
    fail(ErrorKind::usage, "--constraint '{}': no plan says '{}'{}", text, name, suggestion(name, names));
  const std::string bound = without_blanks(text.substr(sign + 2));
  std::optional<double> number;
  if (name == "memory") {
    if (const std::optional<int64_t> bytes = parse_bytes(bound)) number = static_cast<double>(*bytes);
  } else {
    number = parse_count(bound);
  }
  if (!number || !std::isfinite(*number))
    fail(ErrorKind::usage, "--constraint '{}': '{}' is no {}", text, bound,
         name == "memory" ? "amount of memory, such as 800MB" : "number, such as 100k");
  return {text, name, text[sign] == '<', *number};
}

Measured measured_curve(const run::MetricsHistory& history, const std::string& metric, int64_t begun) {
  Measured measured;
  const auto found = history.by_epoch.find(metric), epochs = history.by_epoch.find("epoch");
  if (found == history.by_epoch.end() || epochs == history.by_epoch.end()) return measured;
  measured.is_known = true;
  for (size_t index = 0; index < std::min(found->second.values.size(), epochs->second.values.size()); ++index)
    if (std::isfinite(found->second.values[index]) && epochs->second.values[index] > static_cast<double>(begun))
      measured.curve.emplace_back(static_cast<int64_t>(epochs->second.values[index]), found->second.values[index]);
  return measured;
}

double measured_seconds(const run::MetricsHistory& history, int64_t begun) {
  double before = 0, last = 0;
  for (const auto& [epoch, seconds] : measured_curve(history, "train_seconds").curve) {
    if (epoch <= begun) before = seconds;
    last = seconds;
  }
  return last - before;
}

std::optional<std::vector<double>> measure(const run::MetricsHistory& history, const std::vector<Objective>& objectives,
                                           const TrialPlan& plan, const std::optional<Deployed>& deployed,
                                           int64_t begun) {
  if (!deployed && needs_deployment(objectives)) return std::nullopt;
  const Objective& first = objectives.front();
  const Measured curve = measured_curve(history, first.name, begun);
  if (curve.curve.empty()) return std::nullopt;
  const auto best = std::min_element(curve.curve.begin(), curve.curve.end(), [&](const auto& a, const auto& b) {
    return first.loss(a.second) < first.loss(b.second);
  });
  std::vector<double> values;
  for (const Objective& objective : objectives) {
    if (objective.name == "parameters") {
      values.push_back(static_cast<double>(plan.parameters));
    } else if (objective.name == "memory") {
      values.push_back(static_cast<double>(plan.memory));
    } else if (objective.name == "size") {
      values.push_back(static_cast<double>(deployed->bytes));
    } else if (objective.name == "latency") {
      values.push_back(deployed->latency_seconds);
    } else if (objective.name == "seconds") {
      values.push_back(measured_seconds(history));
    } else {
      const Measured other = measured_curve(history, objective.name, begun);
      const auto at = std::find_if(other.curve.begin(), other.curve.end(),
                                   [&](const auto& one) { return one.first == best->first; });
      if (at == other.curve.end()) return std::nullopt;
      values.push_back(at->second);
    }
  }
  return values;
}

}  // namespace weft::tune
