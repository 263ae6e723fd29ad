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

void require_matches(const std::vector<WeightRule>& rules, const std::vector<models::ParameterSpec>& parameters) {
  std::vector<std::string> names;
  for (const models::ParameterSpec& parameter : parameters) names.push_back(parameter.name);
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

/// What ranks can have some of, along a dimension of a weight.
struct Units {
  int dimension = 0;
  int64_t blocks = 1, unit = 1, count = 0;  // 0: the weight has no such dimension
};

Units units_of(const models::ParameterSpec& parameter, std::string_view how, bool experts) {
  const bool is_first = how == "outputs" || how == "rows";
  Units units{.dimension = (is_first ? 0 : 1) + (experts ? 1 : 0)};
  if (units.dimension == 0) {
    units.blocks = parameter.blocks;
    units.unit = parameter.unit;
  }
  if (parameter.shape.rank() > units.dimension)
    units.count = parameter.shape[units.dimension] / (units.blocks * units.unit);
  return units;
}

/// "head.weight=inputs, " where that dimension can be split; for the message.
std::string other_split(const models::ParameterSpec& parameter, std::string_view how, bool experts, int64_t ranks) {
  for (const auto& [one, other] : {std::pair("outputs", "inputs"), {"rows", "columns"}}) {
    if (how != one && how != other) continue;
    const char* const instead = how == one ? other : one;
    const int64_t count = units_of(parameter, instead, experts).count;
    return count > 0 && count % ranks == 0 ? fmt::format("{}={}, ", parameter.name, instead) : "";
  }
  return "";
}

/// As the spec asks for it. `experts`: of which ranks along the axis data have some, in the first dimension.
passes::DimensionSplit split_of(const models::ParameterSpec& parameter, const std::string& how, bool experts,
                                int64_t ranks) {
  const auto [dimension, blocks, unit, units] = units_of(parameter, how, experts);
  if (units == 0)
    fail(ErrorKind::usage, "shard.tensor: '{}' {} has no {}; choose outputs, or whole", parameter.name,
         to_string(parameter.shape), how);
  if (units % ranks == 0) return {dimension, blocks};
  const std::string heads = unit == 1 ? "" : fmt::format(", which are {} heads of {}", units, unit);
  fail(ErrorKind::usage,
       "shard.tensor: the {} {} of '{}' {}{} cannot be split evenly among {} ranks; set {}mesh.tensor to one of {}, or "
       "{}=whole",
       parameter.shape[dimension], how, parameter.name, to_string(parameter.shape), heads, ranks,
       other_split(parameter, how, experts, ranks), divisors_of(units), parameter.name);
}

/// Whether ranks along another axis have a part each.
bool is_part(const Graph& graph, const std::string& name) {
  const GraphInput* const input = graph.find_input(name);
  return input != nullptr && graph.sharding(input->value);
}

bool is_worth_splitting(const models::ParameterSpec& parameter) {
  return parameter.trainable && parameter.shape.rank() >= 2 && parameter.shape.elements() >= kFewestShared;
}

passes::DimensionOptions dimension_options_of(const Graph& graph, const std::vector<SlotSpec>& slots,
                                              const std::vector<models::ParameterSpec>& parameters,
                                              const spec::RunSpec& spec, int ranks) {
  passes::DimensionOptions options{.axis = {kTensorAxis, ranks}, .splits_sums = spec.shard.sequence};
  const std::vector<WeightRule> rules = rules_of(spec);
  require_matches(rules, parameters);
  for (const models::ParameterSpec& parameter : parameters) {
    // Those that images decide are made whole.
    if (parameter.initializer.kind == models::Initializer::Kind::whitening) continue;
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const WeightRule& one) { return matches_weight(one, parameter.name); });
    const std::string how = rule == rules.end() ? "" : rule->how;
    if (how == "whole") continue;
    if (how == kAuto && is_worth_splitting(parameter))
      options.open[parameter.name] = {parameter.blocks, parameter.unit};
    else if (!how.empty() && how != kAuto)
      options.states[parameter.name] = split_of(parameter, how, is_part(graph, parameter.name), ranks);
    options.followers.insert(parameter.name);
    for (const SlotSpec& slot : slots)
      if (slot.name.ends_with("/" + parameter.name)) options.slots[parameter.name].push_back(slot.name);
  }
  options.terms = {kStop};
  if (const ValueId loss = graph.find_value("loss"); loss.valid()) options.last_of_forward = graph.value(loss).producer;
  return options;
}

/// Of states that the batch or the update splits; both split alike what both have.
void take_shardings(Shardings& shardings, const Graph& before, const passes::DimensionPartition& after,
                    const MeshAxis& axis) {
  for (const auto& [name, split] : after.states) {
    const GraphInput* const input = before.find_input(name);
    if (input == nullptr) continue;
    const auto known = shardings.find(name);
    if (known == shardings.end())
      shardings.emplace(name, passes::sharding_of(before.shape(input->value), split, axis));
    else if (std::find(known->second.split.begin(), known->second.split.end(), axis) == known->second.split.end())
      known->second = passes::split_further(known->second, split, axis);
  }
}

passes::DimensionPartition split_batch(const Graph& graph, const passes::DimensionOptions& options,
                                       const spec::RunSpec& spec, Shardings& shardings) {
  passes::DimensionPartition batch = passes::partition_dimensions(graph, options);
  if (options.open.empty() && options.states.empty())
    fail(ErrorKind::usage,
         "mesh.tensor = {}: shard.tensor = '{}' leaves every weight of '{}' whole, so that there is nothing to share; "
         "set "
         "shard.tensor=auto, name weights there that are split, or set mesh.tensor=1",
         options.axis.size, spec.shard.tensor, spec.model.name);
  if (batch.states.empty())
    fail(ErrorKind::usage,
         "mesh.tensor = {}: no weight of '{}' can be split evenly among so many ranks; set mesh.tensor=1, or name "
         "weights in shard.tensor to see why",
         options.axis.size, spec.model.name);
  take_shardings(shardings, graph, batch, options.axis);
  return batch;
}

/// Of weights that the batch has split so.
void split_update(Graph& update, passes::DimensionOptions options, const passes::DimensionPartition& batch,
                  Shardings& shardings) {
  options.states = batch.states;
  options.open.clear();
  options.followers.clear();
  options.results.clear();
  options.last_of_forward = {};
  options.splits_sums = false;
  passes::DimensionPartition parts = passes::partition_dimensions(update, options);
  take_shardings(shardings, update, parts, options.axis);
  update = std::move(parts.graph);
}

void split_slots(std::vector<SlotSpec>& slots, const Shardings& shardings) {
  for (SlotSpec& slot : slots) {
    const auto sharding = shardings.find(slot.name);
    if (sharding == shardings.end()) continue;
    slot.sharding = sharding->second;
    slot.type.shape = part_shape(sharding->second);
  }
}

/// Of the nodes that partition_dimensions() has made of those before. What was added for the sake of a node is made for
/// the same one.
GradientOrigins origins_after(const GradientOrigins& before, const std::vector<passes::NodeOrigin>& nodes) {
  const auto is_forward = [&](NodeId node) {
    return node.valid() && static_cast<size_t>(node.index) < before.forward_nodes;
  };
  GradientOrigins after;
  while (after.forward_nodes < nodes.size() && is_forward(nodes[after.forward_nodes].of)) ++after.forward_nodes;
  std::vector<NodeId> forward(before.forward_nodes);  // what stands for each
  std::vector<bool> has_itself(before.forward_nodes, false);
  for (size_t index = 0; index < after.forward_nodes; ++index) {
    const auto of = static_cast<size_t>(nodes[index].of.index);
    if (has_itself[of]) continue;
    has_itself[of] = nodes[index].is_itself;
    forward[of] = NodeId{static_cast<int32_t>(index)};
  }
  for (size_t index = after.forward_nodes; index < nodes.size(); ++index) {
    const NodeId of = nodes[index].of;
    const size_t behind = of.valid() && !is_forward(of) ? static_cast<size_t>(of.index) - before.forward_nodes : 0;
    const NodeId made_for = is_forward(of) || !of.valid() ? of : before.made_for[behind];
    after.made_for.push_back(made_for.valid() ? forward[static_cast<size_t>(made_for.index)] : NodeId{});
    after.is_sum.push_back(nodes[index].is_itself && before.is_sum[behind]);
  }
  return after;
}

}  // namespace

void split_weights(TrainingStep& step, const spec::RunSpec& spec, int ranks) {
  if (ranks == 1) return;
  const passes::DimensionOptions options = dimension_options_of(step.graph, step.slots, step.parameters, spec, ranks);
  passes::DimensionPartition batch = split_batch(step.graph, options, spec, step.shardings);
  step.graph = std::move(batch.graph);
  if (step.update) split_update(*step.update, options, batch, step.shardings);
  split_slots(step.slots, step.shardings);
}

Shardings split_weights(MicroBatch& micro, Graph& update, std::vector<SlotSpec>& slots,
                        const std::vector<models::ParameterSpec>& parameters, const spec::RunSpec& spec, int ranks,
                        Shardings shardings) {
  if (ranks == 1) return shardings;
  passes::DimensionOptions options = dimension_options_of(micro.graph, slots, parameters, spec, ranks);
  for (const TrainedParameter& parameter : micro.trained)
    options.results.emplace_back(parameter.gradient, parameter.name);
  passes::DimensionPartition batch = split_batch(micro.graph, options, spec, shardings);
  micro.origins = origins_after(micro.origins, batch.origins);
  micro.graph = std::move(batch.graph);
  for (size_t index = 0; index < micro.trained.size(); ++index) {
    micro.trained[index].value = micro.graph.find_input(micro.trained[index].name)->value;
    micro.trained[index].gradient = batch.results[index];
  }
  split_update(update, options, batch, shardings);
  split_slots(slots, shardings);
  return shardings;
}

}  // namespace weft::step
