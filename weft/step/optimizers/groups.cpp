// Groups of parameters: which rate and which decay each parameter gets.
#include <fnmatch.h>

#include <regex>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/ops/ops.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

namespace {

constexpr std::string_view kRegex = "regex:";

bool matches(const std::string& group, const std::string& pattern, const std::string& name) {
  if (!pattern.starts_with(kRegex)) return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  try {
    return std::regex_match(name, std::regex(pattern.substr(kRegex.size())));
  } catch (const std::regex_error&) {
    fail(ErrorKind::usage, "optimizer.groups.{}.match = '{}' is no regular expression (ECMAScript)", group, pattern);
  }
}

/// The name of the only group that matches, "" where none does.
std::string group_of(const std::string& parameter, const std::map<std::string, spec::ParameterGroup>& groups) {
  std::string found;
  for (const auto& [name, group] : groups) {
    if (!matches(name, group.match, parameter)) continue;
    if (!found.empty())
      fail(ErrorKind::usage, "parameter '{}' belongs to optimizer.groups.{} and optimizer.groups.{}; narrow one match",
           parameter, found, name);
    found = name;
  }
  return found;
}

void require_members(const std::vector<TrainedParameter>& parameters,
                     const std::map<std::string, spec::ParameterGroup>& groups) {
  for (const auto& [name, group] : groups) {
    bool any = false;
    std::vector<std::string> known;
    for (const TrainedParameter& parameter : parameters) {
      any = any || matches(name, group.match, parameter.name);
      known.push_back(parameter.name);
    }
    if (!any)
      fail(ErrorKind::usage, "optimizer.groups.{}.match = '{}' matches no parameter{}", name, group.match,
           suggestion(group.match, known));
  }
}

}  // namespace

std::vector<TrainedParameter> without_frozen(const spec::OptimizerSpec& spec,
                                             std::vector<TrainedParameter> parameters) {
  require_members(parameters, spec.groups);
  std::erase_if(parameters, [&](const TrainedParameter& parameter) {
    const std::string group = group_of(parameter.name, spec.groups);
    return !group.empty() && spec.groups.at(group).learning_rate_factor == 0;
  });
  return parameters;
}

std::vector<UpdatedParameter> assign_groups(UpdateBuilder& builder, const std::vector<TrainedParameter>& parameters) {
  Graph& graph = builder.graph();
  const spec::OptimizerSpec& spec = builder.spec();
  const ValueId learning_rate = builder.scalar("learning_rate");
  std::map<std::string, ValueId> rates = {{"", learning_rate}};
  for (const auto& [name, group] : spec.groups) {
    if (group.learning_rate_factor == 0) continue;
    const ValueId base = group.has_own_rate() ? builder.scalar("learning_rate/" + name) : learning_rate;
    rates[name] =
        group.learning_rate_factor == 1 ? base : ops::multiply_scalar(graph, base, group.learning_rate_factor);
  }
  std::vector<UpdatedParameter> updated;
  for (const TrainedParameter& parameter : parameters) {
    const std::string name = group_of(parameter.name, spec.groups);
    double decay = parameter.decay ? spec.weight_decay : 0;
    if (!name.empty()) {
      const spec::ParameterGroup& group = spec.groups.at(name);
      if (group.weight_decay >= 0) decay = group.weight_decay;
    }
    updated.push_back({parameter.name, parameter.value, parameter.gradient, rates.at(name), decay, parameter.decay,
                       parameter.hidden});
  }
  return updated;
}

}  // namespace weft::step
