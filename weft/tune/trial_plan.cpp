#include "weft/tune/trial_plan.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/program/prepared_run.h"
#include "weft/spec/recipe.h"
#include "weft/tune/recipe_space.h"

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
  const program::PreparedRun run(library, spec);
  return {.parameters = step::parameter_count(run.step.parameters),
          .memory = run.planned_total_bytes,
          .epochs = spec::begun_epochs(run.spec)};
}

std::string print_best(const StudySettings& settings, const StudyTrial& trial, const Library& library) {
  std::string heading = fmt::format("# The best of a search: trial {}, ", trial.number);
  for (size_t index = 0; index < settings.objectives.size(); ++index)
    heading +=
        fmt::format("{}{} {:.6g}", index == 0 ? "" : ", ", settings.objectives[index].name, trial.results[index]);
  heading += ".\n# What was searched:";
  for (const auto& [name, value] : trial.values) heading += fmt::format("\n#   {} = {}", name, shown(value));
  for (char& c : heading)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = ' ';
  return heading + "\n" + spec::print_recipe(trial_spec(settings, trial.values, library), library);
}

}  // namespace weft::tune
