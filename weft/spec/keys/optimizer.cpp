// [optimizer] and the groups of parameters in it.
#include <fmt/ranges.h>

#include "weft/spec/optimizer_defaults.h"
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

namespace {

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerDefaults& defaults : kOptimizers) names.emplace_back(defaults.name);
  return names;
}

}  // namespace

std::vector<RecipeKey> optimizer_keys() {
  return KeySection<OptimizerSpec>("optimizer", [](RunSpec& spec) -> OptimizerSpec& { return spec.optimizer; })
      .add("name", &OptimizerSpec::name,
           {.choices = optimizer_names(), .help = fmt::format("{}", fmt::join(optimizer_names(), ", "))})
      .add("learning_rate", &OptimizerSpec::learning_rate,
           {.low = kAboveZero, .high = 1e6, .help = "the peak, which the schedule scales", .automatic = 0.0})
      .add("weight_decay", &OptimizerSpec::weight_decay,
           {.low = 0, .high = 1e3, .help = "not applied to bias and norm", .automatic = -1.0})
      .add("momentum", &OptimizerSpec::momentum,
           {.low = 0, .high = 0.9999999, .help = "sgd, lars, muon, rmsprop", .automatic = -1.0})
      .add("nesterov", &OptimizerSpec::nesterov, {.help = "sgd; muon always does"})
      .add("beta1", &OptimizerSpec::beta1,
           {.low = 0, .high = 0.9999999, .help = "adam, adamw, lamb, and what muon leaves to adamw"})
      .add("beta2", &OptimizerSpec::beta2, {.low = 0, .high = 0.9999999, .help = "the same"})
      .add("epsilon", &OptimizerSpec::epsilon, {.low = kAboveZero, .high = 1, .help = "the same, and rmsprop"})
      .add("smoothing", &OptimizerSpec::smoothing,
           {.low = 0, .high = 0.9999999, .help = "rmsprop: share of the mean of squares kept"})
      .add("centered", &OptimizerSpec::centered, {.help = "rmsprop: by the variance of the gradient"})
      .add("trust_coefficient", &OptimizerSpec::trust_coefficient, {.low = kAboveZero, .high = 1e3, .help = "lars"})
      .add("adamw_learning_rate_factor", &OptimizerSpec::adamw_learning_rate_factor,
           {.low = 0, .high = 1e6, .help = "muon: adamw's rate over learning_rate"})
      .take();
}

std::vector<RecipeKey> group_keys(const std::string& group) {
  std::vector<std::string> schedules = {""};  // the run's own
  for (const std::string& name : schedule_names())
    if (name != "plateau") schedules.push_back(name);
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
