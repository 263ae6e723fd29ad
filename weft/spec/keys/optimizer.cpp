// [optimizer] and the groups of parameters in it.
#include <fmt/ranges.h>

#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> optimizer_keys(const Entries& entries) {
  using Part = OptimizerSpec;
  const std::vector<std::string> names = names_of(entries.optimizers);
  return KeySection<Part>("optimizer", [](RunSpec& spec) -> Part& { return spec.optimizer; })
      .add("name", &Part::name, {.choices = names, .help = fmt::format("{}", fmt::join(names, ", "))})
      .add("learning_rate", &Part::learning_rate,
           {.low = kAboveZero, .high = 1e6, .help = "the peak, which the schedule scales", .automatic = 0.0})
      .measured(&MeasuredKeys::learning_rate)
      .add("weight_decay", &Part::weight_decay,
           {.low = 0, .high = 1e3, .help = "not applied to bias and norm", .automatic = -1.0})
      .add("freeze", &Part::freeze,
           {.help = "parameters that are not trained, by name: 'conv1.*, layer1.*'; their batch norms keep their "
                    "statistics"})
      .quiet()
      .add_declared(declared_keys(entries.optimizers),
                    {{"momentum", &Part::momentum},
                     {"nesterov", &Part::nesterov},
                     {"beta1", &Part::beta1},
                     {"beta2", &Part::beta2},
                     {"epsilon", &Part::epsilon},
                     {"smoothing", &Part::smoothing},
                     {"centered", &Part::centered},
                     {"trust_coefficient", &Part::trust_coefficient},
                     {"adamw_learning_rate_factor", &Part::adamw_learning_rate_factor}})
      .take();
}

std::vector<RecipeKey> group_keys(const Entries& entries, const std::string& group) {
  std::vector<std::string> schedules = {""};  // the run's own
  for (const ScheduleEntry& schedule : entries.schedules)
    if (schedule.for_groups) schedules.push_back(schedule.name);
  using Group = ParameterGroup;
  return KeySection<Group>(kGroups + group, [=](RunSpec& spec) -> Group& { return spec.optimizer.groups[group]; })
      .add("match", &Group::match, {.help = "parameter names: glob, or regex:EXPRESSION"})
      .add("learning_rate_factor", &Group::learning_rate_factor, {.low = 0, .high = 1e6, .help = "0: frozen"})
      .add("weight_decay", &Group::weight_decay,
           {.low = -1, .high = 1e3, .help = "bias and norm included; negative: as without the group"})
      .add("schedule", &Group::schedule, {.choices = schedules, .help = "a schedule's name; empty: the run's"})
      .add("epochs", &Group::epochs,
           {.low = 0, .high = 1e6, .unit = "epochs", .help = "trained in so many first epochs; 0: in all"})
      .take();
}

}  // namespace weft::spec
