// Groups of parameters: which rate and which decay each parameter gets.
#include <fnmatch.h>

#include <algorithm>
#include <regex>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/ops/ops.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

namespace {

constexpr std::string_view kRegex = "regex:";

/// `key` is that of the pattern.
bool matches(const std::string& key, const std::string& pattern, const std::string& name) {
  if (!pattern.starts_with(kRegex)) return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  try {
    return std::regex_match(name, std::regex(pattern.substr(kRegex.size())));
  } catch (const std::regex_error&) {
    fail(ErrorKind::usage, "{} = '{}' is no regular expression (ECMAScript)", key, pattern);
  }
}

std::string match_key(const std::string& group) { return fmt::format("optimizer.groups.{}.match", group); }

/// The name of the only group that matches, "" where none does.
std::string group_of(const std::string& parameter, const std::map<std::string, spec::ParameterGroup>& groups) {
  std::string found;
  for (const auto& [name, group] : groups) {
    if (!matches(match_key(name), group.match, parameter)) continue;
    if (!found.empty())
      fail(ErrorKind::usage, "parameter '{}' belongs to optimizer.groups.{} and optimizer.groups.{}; narrow one match",
           parameter, found, name);
    found = name;
  }
  return found;
}

void require_match(const std::string& key, const std::string& pattern,
                   const std::vector<TrainedParameter>& parameters) {
  std::vector<std::string> known;
  for (const TrainedParameter& parameter : parameters) {
    if (matches(key, pattern, parameter.name)) return;
    known.push_back(parameter.name);
  }
  fail(ErrorKind::usage, "{} = '{}' matches no parameter{}", key, pattern, suggestion(pattern, known));
}

constexpr const char* kFreeze = "optimizer.freeze";

/// Where the next comma stands that divides patterns, or the end. In brackets it belongs to one: "regex:fc[,]{1,2}".
size_t end_of_pattern(const std::string& text, size_t at) {
  int depth = 0;
  bool in_class = false;  // of characters: brackets in it are such
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ',' && depth == 0 && !in_class) break;
    if (c == '\\') ++at;
    if (in_class)
      in_class = c != ']';
    else if (c == '[')
      in_class = true;
    else if (c == '(' || c == '{')
      ++depth;
    else if ((c == ')' || c == '}') && depth > 0)
      --depth;
  }
  return std::min(at, text.size());
}

/// The patterns of optimizer.freeze, which commas divide.
std::vector<std::string> freeze_patterns(const spec::OptimizerSpec& spec) {
  std::vector<std::string> patterns;
  for (size_t begin = 0; begin < spec.freeze.size();) {
    const size_t end = end_of_pattern(spec.freeze, begin);
    const std::string part = spec.freeze.substr(begin, end - begin);
    const size_t first = part.find_first_not_of(' ');
    if (first != part.npos) patterns.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
    begin = end + 1;
  }
  return patterns;
}

}  // namespace

bool is_frozen(const spec::OptimizerSpec& spec, const std::string& parameter) {
  const std::vector<std::string> patterns = freeze_patterns(spec);
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(kFreeze, pattern, parameter); });
}

std::vector<TrainedParameter> without_frozen(const spec::OptimizerSpec& spec,
                                             std::vector<TrainedParameter> parameters) {
  for (const auto& [name, group] : spec.groups) require_match(match_key(name), group.match, parameters);
  for (const std::string& pattern : freeze_patterns(spec)) require_match(kFreeze, pattern, parameters);
  std::erase_if(parameters, [&](const TrainedParameter& parameter) {
    if (is_frozen(spec, parameter.name)) return true;
    const std::string group = group_of(parameter.name, spec.groups);
    return !group.empty() && spec.groups.at(group).learning_rate_factor == 0;
  });
  if (parameters.empty() && !spec.freeze.empty())
    fail(ErrorKind::usage, "{} = '{}' leaves no parameter to train; narrow it", kFreeze, spec.freeze);
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
                       parameter.hidden, parameter.parts});
  }
  return updated;
}

}  // namespace weft::step
