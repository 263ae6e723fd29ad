#include "weft/cli/tune/study_figure.h"

#include <algorithm>

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
  return figure;
}

}  // namespace weft::cli
