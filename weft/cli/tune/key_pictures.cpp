#include "weft/cli/tune/key_pictures.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/plot/charts.h"
#include "weft/plot/figure.h"
#include "weft/tune/results/what_mattered.h"

namespace weft::cli {

using tune::Dimension;
using tune::StudySettings;
using tune::StudyTrial;

namespace {

constexpr size_t kMapPieces = 48;      // of each side of a contour
constexpr size_t kPairsShown = 10;     // of the most important ones
constexpr size_t kChoicesMarked = 12;  // of one axis

/// Texts without the quotes of a recipe.
std::string label_of_choice(const KeyValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : shown(value);
}

/// At their unit coordinates.
plot::AxisMarks marks_of_key(const tune::Space& space, size_t index) {
  const Dimension& dimension = space[index];
  plot::AxisMarks marks;
  if (dimension.kind == Dimension::Kind::choice) {
    const size_t step = (dimension.choices.size() + kChoicesMarked - 1) / kChoicesMarked;
    for (size_t at = 0; at < dimension.choices.size(); at += step)
      marks.emplace_back(space.to_unit(index, static_cast<double>(at)), label_of_choice(dimension.choices[at]));
    return marks;
  }
  for (const double unit : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const double value = space.from_unit(index, unit);
    const double at = dimension.kind == Dimension::Kind::integer ? space.to_unit(index, value) : unit;
    if (marks.empty() || marks.back().first != at) marks.emplace_back(at, fmt::format("{:.4g}", value));
  }
  return marks;
}

std::vector<const StudyTrial*> with_results(const std::vector<StudyTrial>& trials) {
  std::vector<const StudyTrial*> found;
  for (const StudyTrial& trial : trials)
    if (trial.has_results() && std::isfinite(trial.results.front()) && trial.state != StudyTrial::State::failed &&
        trial.state != StudyTrial::State::refused)
      found.push_back(&trial);
  return found;
}

std::string pair_name(const StudySettings& settings, const tune::PairShare& pair) {
  return settings.space[pair.first].name + " x " + settings.space[pair.second].name;
}

std::vector<size_t> ranked_keys(const tune::Importances& importances) {
  std::vector<size_t> order(importances.keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return importances.keys[a] > importances.keys[b]; });
  return order;
}

}  // namespace

std::string parallel_picture(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  const tune::Objective& objective = settings.objectives.front();
  std::vector<const StudyTrial*> ranked = with_results(trials);
  if (ranked.empty())
    fail(ErrorKind::usage, "no trial of the study has a result yet; let it train for some more epochs");
  std::stable_sort(ranked.begin(), ranked.end(), [&](const StudyTrial* a, const StudyTrial* b) {
    return objective.loss(a->results.front()) < objective.loss(b->results.front());
  });
  const auto [least, most] = std::minmax_element(ranked.begin(), ranked.end(), [](const auto* a, const auto* b) {
    return a->results.front() < b->results.front();
  });
  const plot::Axis axis = plot::make_axis((*least)->results.front(), (*most)->results.front(), 5);
  const auto height_of = [&](double value) { return (value - axis.low) / (axis.high - axis.low); };
  plot::ParallelAxes picture{.title = fmt::format("{} of {} trials, the best ones dark", objective.name, ranked.size()),
                             .axes = {},
                             .lines = {}};
  for (size_t index = 0; index < settings.space.size(); ++index)
    picture.axes.push_back({settings.space[index].name, marks_of_key(settings.space, index)});
  picture.axes.push_back({objective.name, {}});
  for (const double mark : plot::marks_of(axis))
    picture.axes.back().marks.emplace_back(height_of(mark), plot::label_of(axis, mark));
  for (size_t place = 0; place < ranked.size(); ++place) {
    const StudyTrial& trial = *ranked[place];
    plot::ParallelAxes::Line line;
    const tune::Point point = settings.space.point(trial.values);
    for (size_t index = 0; index < point.size(); ++index)
      line.at.push_back(point[index] ? settings.space.to_unit(index, *point[index])
                                     : std::numeric_limits<double>::quiet_NaN());
    line.at.push_back(height_of(trial.results.front()));
    // By rank: one bad trial must not make all others look alike.
    line.shade = ranked.size() > 1 ? static_cast<double>(place) / static_cast<double>(ranked.size() - 1) : 0;
    line.hint = fmt::format("trial {}: {:.6g}", trial.number, trial.results.front());
    picture.lines.push_back(std::move(line));
  }
  return plot::draw_svg(picture);
}

std::string contour_picture(const StudySettings& settings, const std::vector<StudyTrial>& trials,
                            std::pair<size_t, size_t> keys) {
  const tune::Objective& objective = settings.objectives.front();
  const std::vector<tune::Measurement> measured = measurements_of(settings, trials);
  const tune::Forest forest(measured, {.seed = settings.seed});
  const auto [first, second] = keys;
  plot::ValueMap map{.title = fmt::format("{}, in the mean over the other keys", objective.name),
                     .x_label = settings.space[first].name,
                     .y_label = settings.space[second].name,
                     .x_marks = marks_of_key(settings.space, first),
                     .y_marks = marks_of_key(settings.space, second),
                     .columns = kMapPieces,
                     .rows = kMapPieces,
                     .values = forest.mean_over_others(first, second, kMapPieces, kMapPieces),
                     .places = {},
                     .low_is_dark = !objective.higher_is_better};
  for (double& value : map.values) value = objective.loss(value);  // back from the loss: it turns the sign or nothing
  for (const tune::Measurement& one : measured) map.places.emplace_back(one.units[first], one.units[second]);
  return plot::draw_svg(map);
}

std::string importance_picture(const StudySettings& settings, const tune::Importances& importances) {
  plot::Bars bars{
      .title = fmt::format("what decides {}: keys alone, and pairs beyond that", settings.objectives.front().name),
      .x_label = "share of the variance over the whole space",
      .bars = {}};
  for (const size_t index : ranked_keys(importances))
    bars.bars.push_back({settings.space[index].name, importances.keys[index], 0});
  for (const tune::PairShare& pair : importances.pairs) {
    if (bars.bars.size() >= importances.keys.size() + kPairsShown) break;
    bars.bars.push_back({pair_name(settings, pair), pair.share, 1});
  }
  return plot::draw_svg(bars);
}

Table importance_table(const StudySettings& settings, const tune::Importances& importances) {
  Table table({{"key", Align::left}, {"share of the variance", Align::right}});
  for (const size_t index : ranked_keys(importances))
    table.add_row({settings.space[index].name, fmt::format("{:.3f}", importances.keys[index])});
  for (size_t at = 0; at < std::min(kPairsShown, importances.pairs.size()); ++at)
    table.add_row({pair_name(settings, importances.pairs[at]), fmt::format("{:.3f}", importances.pairs[at].share)});
  return table;
}

std::string importance_json(const StudySettings& settings, const tune::Importances& importances) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::object(), pairs = nlohmann::ordered_json::array();
  for (const size_t index : ranked_keys(importances)) keys[settings.space[index].name] = importances.keys[index];
  for (const tune::PairShare& pair : importances.pairs)
    pairs.push_back(
        {{"keys", {settings.space[pair.first].name, settings.space[pair.second].name}}, {"share", pair.share}});
  return nlohmann::ordered_json{{"keys", keys}, {"pairs", pairs}}.dump(2) + "\n";
}

std::pair<size_t, size_t> pair_of_keys(const StudySettings& settings, const std::vector<StudyTrial>& trials,
                                       const std::string& text) {
  if (settings.space.size() < 2)
    fail(ErrorKind::usage, "a contour is of two keys, and this study searches one; look at --picture slices");
  if (text.empty()) {
    const tune::Importances importances = importances_of(settings, trials);
    const std::vector<size_t> order = ranked_keys(importances);
    return {order[0], order[1]};
  }
  std::vector<std::string> names;
  for (const Dimension& dimension : settings.space.dimensions()) names.push_back(dimension.name);
  const auto find = [&](const std::string& name) {
    const std::optional<size_t> found = settings.space.find(name);
    if (!found)
      fail(ErrorKind::usage, "--keys {}: the study does not search '{}'{}", text, name, suggestion(name, names));
    return *found;
  };
  const size_t comma = text.find(',');
  if (comma == text.npos || find(text.substr(0, comma)) == find(text.substr(comma + 1)))
    fail(ErrorKind::usage, "--keys {}: name two keys, such as {},{}", text, names[0], names[1]);
  return {find(text.substr(0, comma)), find(text.substr(comma + 1))};
}

}  // namespace weft::cli
