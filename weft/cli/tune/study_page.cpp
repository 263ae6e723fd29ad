#include "weft/cli/tune/study_page.h"

#include <fmt/format.h>

#include "weft/cli/tune/key_pictures.h"
#include "weft/cli/tune/study_figure.h"
#include "weft/cli/tune/study_table.h"
#include "weft/report/html_page.h"
#include "weft/tune/results/what_mattered.h"

namespace weft::cli {

using tune::StudySettings;
using tune::StudyTrial;

namespace {

std::string headline(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  size_t with_results = 0;
  for (const StudyTrial& trial : trials) with_results += trial.has_results() ? 1 : 0;
  return fmt::format("{} trials, {} of them with results; searcher {}, scheduler {}, objective {}", trials.size(),
                     with_results, settings.searcher, settings.scheduler.name,
                     tune::print_objectives(settings.objectives));
}

std::string best_section(const Library& library, const StudySettings& settings, const std::vector<StudyTrial>& trials,
                         const StudyTrial& best, const std::optional<run::Summary>& summary) {
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"trial", std::to_string(best.number)});
  for (size_t index = 0; index < settings.objectives.size(); ++index)
    table.add_row({settings.objectives[index].name,
                   objective_in_words(settings.objectives[index], best.results[index], library)});
  if (summary)
    for (const MetricValue& metric : summary->test_metrics)
      if (const MetricEntry* entry = find_entry(library.metrics, metric.name); entry != nullptr && metric.value)
        table.add_row({"test_" + metric.name, shown(*entry, metric.value)});
  add_values(table, trials, best);
  return report::scrolled(table);
}

std::string front_section(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  return report::paragraph("No other trial is better than these in one objective without being worse in another.") +
         report::picture(front_figure(settings, trials), "The trials that no other one beats in all objectives") +
         report::scrolled(study_table(settings, best_trials(settings, trials), 0));
}

/// What a forest learns from the trials.
std::string keys_section(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  const tune::Importances importances = importances_of(settings, trials);
  std::string parts = report::picture(parallel_picture(settings, trials), "All trials across all keys");
  parts += report::paragraph(
      "How much of the variance each key decides by itself, and pairs of keys beyond that, as a random forest has "
      "learnt it from the trials (fANOVA).");
  parts += report::picture(importance_picture(settings, importances), "What decides the result");
  parts += report::scrolled(importance_table(settings, importances));
  if (settings.space.size() > 1)
    parts += report::picture(contour_picture(settings, trials, pair_of_keys(settings, trials, "")),
                             "The two keys that decide the most");
  return report::section("importance", "What decided", parts);
}

}  // namespace

std::string study_page(const Library& library, const std::string& name, const StudySettings& settings,
                       const std::vector<StudyTrial>& trials, const std::optional<run::Summary>& best) {
  const plot::Figure figure = study_figure(settings, trials);  // says where there is nothing to show
  std::string body = report::paragraph(headline(settings, trials));
  if (const std::optional<StudyTrial> trial = best_trial(settings, trials))
    body += report::section("best", "The best trial", best_section(library, settings, trials, *trial, best));
  if (settings.objectives.size() > 1)
    body += report::section("front", "Between the objectives", front_section(settings, trials));
  body += report::section("search", "The search", report::picture(figure, "How the best grew, and learning curves"));
  if (measurements_of(settings, trials).size() >= 2) body += keys_section(settings, trials);
  std::string slices;
  for (const tune::Dimension& dimension : settings.space.dimensions())
    slices += report::picture(slice_figure(settings, trials, dimension),
                              settings.objectives.front().name + " over " + dimension.name);
  body += report::section("keys", "What the keys did", slices);
  body += report::section("trials", "All trials", report::scrolled(study_table(settings, trials, 0)));
  return report::html_page(name, "weft tune", body);
}

}  // namespace weft::cli
