#include "weft/cli/tune/study_figure.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::cli {

namespace {

constexpr size_t kCurves = 8;  // of the best trials

bool is_share(const std::vector<plot::Series>& all) {
  return std::all_of(all.begin(), all.end(), [](const plot::Series& series) {
    return std::all_of(series.y.begin(), series.y.end(), [](double y) { return y >= 0 && y <= 1; });
  });
}

}  // namespace

plot::Figure study_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials) {
  const tune::Objective& objective = settings.objectives.front();
  plot::Series each{.name = "trial", .x = {}, .y = {}, .group = 1, .faint = true},
      best{.name = "best so far", .x = {}, .y = {}, .group = 0};
  std::vector<const tune::StudyTrial*> ranked;
  for (const tune::StudyTrial& trial : trials) {
    if (!trial.has_results()) continue;
    const double value = trial.results.front();
    each.x.push_back(static_cast<double>(trial.number));
    each.y.push_back(value);
    const bool is_better = best.y.empty() || objective.loss(value) < objective.loss(best.y.back());
    best.x.push_back(static_cast<double>(trial.number));
    best.y.push_back(is_better ? value : best.y.back());
    if (!trial.curve.empty()) ranked.push_back(&trial);
  }
  if (best.y.empty())
    fail(ErrorKind::usage, "no trial of the study has a result yet; let it train for some more epochs");
  std::stable_sort(ranked.begin(), ranked.end(), [&](const tune::StudyTrial* a, const tune::StudyTrial* b) {
    return objective.loss(a->results.front()) < objective.loss(b->results.front());
  });
  ranked.resize(std::min(ranked.size(), kCurves));
  plot::Panel search{
      .title = objective.name, .x_label = "trial", .series = {std::move(each), std::move(best)}, .whole_x = true};
  plot::Panel curves{.title = "the best trials", .x_label = "epoch", .series = {}, .whole_x = true};
  for (size_t place = 0; place < ranked.size(); ++place) {
    plot::Series series{
        .name = fmt::format("trial {}", ranked[place]->number), .x = {}, .y = {}, .group = static_cast<int>(place) + 2};
    for (const auto& [epoch, value] : ranked[place]->curve) {
      series.x.push_back(static_cast<double>(epoch));
      series.y.push_back(value);
    }
    curves.series.push_back(std::move(series));
  }
  const bool shares = objective.higher_is_better && is_share(search.series) && is_share(curves.series);
  search.is_share = curves.is_share = shares;
  plot::Figure figure{.title = {}, .panels = {std::move(search)}};
  if (!curves.series.empty()) figure.panels.push_back(std::move(curves));
  for (plot::Panel& panel : front_figure(settings, trials).panels) figure.panels.push_back(std::move(panel));
  return figure;
}

plot::Figure front_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials) {
  plot::Figure figure;
  std::vector<tune::StudyTrial> front = best_trials(settings, trials);
  for (size_t index = 1; index < settings.objectives.size(); ++index) {
    plot::Series all{.name = "trial", .x = {}, .y = {}, .group = 1, .line = plot::Line::none},
        best{.name = "beaten by none", .x = {}, .y = {}, .group = 0};
    std::sort(front.begin(), front.end(), [&](const tune::StudyTrial& a, const tune::StudyTrial& b) {
      return a.results[index] < b.results[index];
    });
    for (const tune::StudyTrial& trial : trials) {
      if (!trial.has_results()) continue;
      all.x.push_back(trial.results[index]);
      all.y.push_back(trial.results.front());
    }
    for (const tune::StudyTrial& trial : front) {
      best.x.push_back(trial.results[index]);
      best.y.push_back(trial.results.front());
    }
    // With three objectives and more, a front has no order in two of them.
    if (settings.objectives.size() > 2) best.line = plot::Line::none;
    figure.panels.push_back({.title = settings.objectives.front().name,
                             .x_label = settings.objectives[index].name,
                             .series = {std::move(all), std::move(best)}});
  }
  return figure;
}

plot::Figure slice_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials,
                          const tune::Dimension& dimension) {
  plot::Series points{.name = "trial", .x = {}, .y = {}, .group = 0, .line = plot::Line::none};
  std::string label = dimension.name;
  if (dimension.log) label = "logarithm of " + label + " to the base 10";
  const std::vector<KeyValue> choices = dimension.choices;
  for (size_t at = 0; at < choices.size(); ++at)
    label += fmt::format("{} {}: {}", at == 0 ? "," : ";", at, shown(choices[at]));
  for (const tune::StudyTrial& trial : trials) {
    if (!trial.has_results() || !tune::has_value(trial.values, dimension.name)) continue;
    const KeyValue value = tune::value_of(trial.values, dimension.name);
    double x = 0;
    if (!choices.empty())
      x = static_cast<double>(std::find(choices.begin(), choices.end(), value) - choices.begin());
    else if (const auto* whole = std::get_if<int64_t>(&value))
      x = static_cast<double>(*whole);
    else if (const auto* real = std::get_if<double>(&value))
      x = *real;
    points.x.push_back(dimension.log ? std::log10(x) : x);
    points.y.push_back(trial.results.front());
  }
  return {.title = {},
          .panels = {{.title = settings.objectives.front().name,
                      .x_label = label,
                      .series = {std::move(points)},
                      .whole_x = !choices.empty()}}};
}

plot::Figure slices_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials) {
  plot::Figure figure;
  for (const tune::Dimension& dimension : settings.space.dimensions())
    for (plot::Panel& panel : slice_figure(settings, trials, dimension).panels)
      figure.panels.push_back(std::move(panel));
  return figure;
}

}  // namespace weft::cli
