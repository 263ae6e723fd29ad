#include "weft/tune/trials/trial_plan.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/program/prepared_run.h"
#include "weft/run/prediction_file.h"
#include "weft/spec/recipe.h"
#include "weft/tune/ranges/recipe_space.h"

namespace weft::tune {

spec::RunSpec base_spec(const StudySettings& settings, const Library& library) {
  spec::RunSpec spec;
  spec::apply_recipe(spec, settings.recipe, "recipe.toml", library);
  for (const std::string& assignment : settings.set) spec::set_from_text(spec, assignment, library);
  spec.threads = settings.threads;
  return spec;
}

spec::RunSpec trial_spec(const StudySettings& settings, const Values& values, const Library& library) {
  spec::RunSpec spec = base_spec(settings, library);
  // Options of the recipe's model would be unknown to another one.
  if (has_value(values, "model.name") && value_of(values, "model.name") != KeyValue(spec.model.name))
    spec.model.options.clear();
  apply_values(spec, values, library);
  spec::resolve(spec, library);
  return spec;
}

TrialPlan plan_trial(const spec::RunSpec& spec, const Library& library) {
  program::PreparedRun run(library, spec);
  const predict::Sources sources = run::sources_here(run, /*loading_seconds=*/0, /*exact=*/false, {});
  return {.parameters = step::parameter_count(run.step.parameters),
          .memory = run.planned_total_bytes,
          .epochs = spec::begun_epochs(run.spec),
          .seconds = predict::predict_run(run, sources).run_seconds().expected};
}

namespace {

std::string values_text(const Values& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, shown(value));
  return text;
}

/// Of the first objective: the epochs done at the evaluation that counts.
int64_t best_epoch(const StudySettings& settings, const StudyTrial& trial) {
  const Objective& objective = settings.objectives.front();
  const auto best = std::min_element(trial.curve.begin(), trial.curve.end(), [&](const auto& a, const auto& b) {
    return objective.loss(a.second) < objective.loss(b.second);
  });
  return best == trial.curve.end() ? 0 : best->first;
}

/// When which values changed, and the commands that do so again.
std::string schedule_text(const StudySettings& settings, const std::vector<Stretch>& lineage, const StudyTrial& trial) {
  std::string text = "Its values changed while it trained:";
  for (const Stretch& stretch : lineage)
    text += fmt::format("\n#   {}, trial {}: {}", epochs_in_words(stretch), stretch.trial, values_text(stretch.values));
  text += fmt::format(
      "\n# The result is of epoch {}. This recipe has the values of the first epochs. These commands change them as "
      "the search did:",
      best_epoch(settings, trial));
  for (size_t index = 0; index < lineage.size(); ++index) {
    text += index == 0 ? "\n#   weft train THIS.toml --run RUN" : "\n#   weft train --resume RUN";
    if (index > 0)
      for (const auto& [name, value] : lineage[index].values) text += fmt::format(" --set '{}={}'", name, shown(value));
    if (index + 1 < lineage.size()) text += fmt::format(" --pause-after {}", lineage[index].end);
  }
  return text;
}

}  // namespace

std::string print_best(const StudySettings& settings, const std::vector<Stretch>& lineage, const StudyTrial& trial,
                       const Library& library, const std::string& remark) {
  std::string heading = fmt::format("# The best of a search: trial {}, ", trial.number);
  for (size_t index = 0; index < settings.objectives.size(); ++index)
    heading +=
        fmt::format("{}{} {:.6g}", index == 0 ? "" : ", ", settings.objectives[index].name, trial.results[index]);
  heading += ".\n# ";
  if (lineage.size() > 1) {
    heading += schedule_text(settings, lineage, trial);
  } else {
    heading += "What was searched:";
    for (const auto& [name, value] : trial.values) heading += fmt::format("\n#   {} = {}", name, shown(value));
  }
  if (!remark.empty()) heading += "\n# " + remark;
  for (char& c : heading)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = ' ';
  return heading + "\n" + spec::print_recipe(trial_spec(settings, lineage.front().values, library), library);
}

}  // namespace weft::tune
