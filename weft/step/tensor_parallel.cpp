#include "weft/step/tensor_parallel.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/passes/ranks/partition_dimensions.h"
#include "weft/step/data_parallel.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/sharded_states.h"

namespace weft::step {

namespace {

constexpr const char* kAuto = "auto";

/// "*.qkv.weight=outputs"
struct WeightRule {
  std::string pattern, how;
};

std::string without_blanks(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// Of shard.tensor; "auto" alone is that of all weights.
std::vector<WeightRule> rules_of(const spec::RunSpec& spec) {
  const std::string& text = spec.shard.tensor;
  if (without_blanks(text) == kAuto) return {{"*", kAuto}};
  const std::vector<std::string> known{"outputs", "inputs", "rows", "columns", "whole", kAuto};
  std::vector<WeightRule> rules;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = without_blanks(text.substr(begin, end - begin));
    begin = end + 1;
    const size_t equals = entry.rfind('=');
    if (equals == std::string::npos || equals == 0)
      fail(ErrorKind::usage,
           "shard.tensor: '{}' is no WEIGHTS=HOW; write such as '*.qkv.weight=outputs, *.proj.weight=inputs', or auto",
           entry);
    const WeightRule rule{without_blanks(entry.substr(0, equals)), without_blanks(entry.substr(equals + 1))};
    if (std::find(known.begin(), known.end(), rule.how) == known.end())
      fail(ErrorKind::usage, "shard.tensor: '{}' of '{}' is not known{}", rule.how, rule.pattern,
           suggestion(rule.how, known));
    rules.push_back(rule);
  }
  return rules;
}

bool matches_weight(const WeightRule& rule, const std::string& name) {
  return fnmatch(rule.pattern.c_str(), name.c_str(), 0) == 0;
}

void require_matches(const std::vector<WeightRule>& rules, const TrainingStep& step) {
  std::vector<std::string> names;
  for (const models::ParameterSpec& parameter : step.parameters) names.push_back(parameter.name);
  for (const WeightRule& rule : rules)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return matches_weight(rule, name); }))
      fail(ErrorKind::usage, "shard.tensor: '{}' matches no weight{}", rule.pattern, suggestion(rule.pattern, names));
}

/// What divides the dimension, for the message.
std::string divisors_of(int64_t number) {
  std::string text;
  for (int64_t divisor = 1; divisor <= std::min<int64_t>(number, 64); ++divisor)
    if (number % divisor == 0) text += (text.empty() ? "" : ", ") + std::to_string(divisor);
  return text;
}

/// As the spec asks for it.
passes::DimensionSplit split_of(const models::ParameterSpec& parameter, const std::string& how, int64_t ranks) {
  const int dimension = how == "outputs" || how == "rows" ? 0 : 1;
  if (parameter.shape.rank() <= dimension)
    fail(ErrorKind::usage, "shard.tensor: '{}' {} has no {}; choose outputs, or whole", parameter.name,
         to_string(parameter.shape), how);
  const int64_t size = parameter.shape[dimension];
  const int64_t blocks = dimension == 0 ? parameter.blocks : 1, unit = dimension == 0 ? parameter.unit : 1;
  const int64_t units = size / (blocks * unit);
  if (units % ranks == 0) return {dimension, blocks};
  const std::string heads = unit == 1 ? "" : fmt::format(", which are {} heads of {}", units, unit);
  fail(ErrorKind::usage,
       "shard.tensor: the {} {} of '{}' {}{} cannot be split evenly among {} ranks; set mesh.tensor to one of {}, or "
       "{}=whole",
       size, how, parameter.name, to_string(parameter.shape), heads, ranks, divisors_of(units), parameter.name);
}

bool is_worth_splitting(const models::ParameterSpec& parameter) {
  return parameter.trainable && parameter.shape.rank() >= 2 && parameter.shape.elements() >= kFewestShared;
}

passes::DimensionOptions dimension_options_of(const TrainingStep& step, const spec::RunSpec& spec, int ranks) {
  passes::DimensionOptions options{.axis = {kTensorAxis, ranks}};
  const std::vector<WeightRule> rules = rules_of(spec);
  require_matches(rules, step);
  for (const models::ParameterSpec& parameter : step.parameters) {
    // Those that images decide are made whole.
    if (parameter.initializer.kind == models::Initializer::Kind::whitening) continue;
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const WeightRule& one) { return matches_weight(one, parameter.name); });
    const std::string how = rule == rules.end() ? "" : rule->how;
    if (how == "whole") continue;
    if (how == kAuto && is_worth_splitting(parameter))
      options.open[parameter.name] = {parameter.blocks, parameter.unit};
    else if (!how.empty() && how != kAuto)
      options.states[parameter.name] = split_of(parameter, how, ranks);
    options.followers.insert(parameter.name);
    for (const SlotSpec& slot : step.slots)
      if (slot.name.ends_with("/" + parameter.name)) options.slots[parameter.name].push_back(slot.name);
  }
  options.terms = {kStop};
  if (const ValueId loss = step.graph.find_value("loss"); loss.valid())
    options.last_of_forward = step.graph.value(loss).producer;
  return options;
}

void take_shardings(TrainingStep& step, const Graph& before, const passes::DimensionPartition& after,
                    const MeshAxis& axis) {
  for (const auto& [name, split] : after.states)
    if (const GraphInput* input = before.find_input(name))
      step.shardings.emplace(name, passes::sharding_of(before.shape(input->value), split, axis));
}

}  // namespace

void split_weights(TrainingStep& step, const spec::RunSpec& spec, int ranks) {
  if (ranks == 1) return;
  passes::DimensionOptions options = dimension_options_of(step, spec, ranks);
  passes::DimensionPartition batch = passes::partition_dimensions(step.graph, options);
  if (batch.states.empty())
    fail(ErrorKind::usage,
         "mesh.tensor = {}: no weight of '{}' can be split evenly among so many ranks; set mesh.tensor=1, or name "
         "weights in shard.tensor to see why",
         ranks, spec.model.name);
  take_shardings(step, step.graph, batch, options.axis);
  step.graph = std::move(batch.graph);
  if (step.update) {
    options.states = batch.states;
    options.open.clear();
    options.followers.clear();
    options.last_of_forward = {};
    passes::DimensionPartition update = passes::partition_dimensions(*step.update, options);
    take_shardings(step, *step.update, update, options.axis);
    step.update = std::move(update.graph);
  }
  for (SlotSpec& slot : step.slots) {
    const auto sharding = step.shardings.find(slot.name);
    if (sharding == step.shardings.end()) continue;
    slot.sharding = sharding->second;
    slot.type.shape = part_shape(sharding->second);
  }
}

}  // namespace weft::step
