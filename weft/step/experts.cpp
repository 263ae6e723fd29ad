#include "weft/step/experts.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/ops/ops.h"

namespace weft::step {

namespace {

/// The axis data where ranks along it have a part each of some dimension; null: they do not.
const MeshAxis* data_axis_of(const Sharding& sharding) {
  const auto found = std::find_if(sharding.split.begin(), sharding.split.end(),
                                  [](const std::optional<MeshAxis>& axis) { return axis && axis->name == kDataAxis; });
  return found == sharding.split.end() ? nullptr : &**found;
}

int64_t parts_of_input(const Graph& graph, const std::string& name) {
  const GraphInput* const input = graph.find_input(name);
  if (input == nullptr || !graph.sharding(input->value)) return 1;
  const MeshAxis* const axis = data_axis_of(*graph.sharding(input->value));
  return axis == nullptr ? 1 : axis->size;
}

}  // namespace

int64_t expert_ranks(const spec::RunSpec& spec, int ranks) { return spec.shard.experts == "data" ? ranks : 1; }

void require_experts(const models::Model& model, const spec::RunSpec& spec, int ranks) {
  if (expert_ranks(spec, ranks) == 1) return;
  const bool has_parts = std::any_of(
      model.parameters.begin(), model.parameters.end(),
      [&](const models::ParameterSpec& parameter) { return parts_of_input(model.graph, parameter.name) > 1; });
  if (!has_parts)
    fail(ErrorKind::usage,
         "shard.experts = 'data': '{}' has no layer of experts here; set model.experts (transformer_lm has it), or "
         "shard.experts=whole",
         spec.model.name);
}

void mark_parts(const Graph& graph, std::vector<TrainedParameter>& trained) {
  for (TrainedParameter& parameter : trained) parameter.parts = parts_of_input(graph, parameter.name);
}

ValueId gradient_of_mean(Graph& graph, const TrainedParameter& part) {
  return ops::multiply_scalar(graph, part.gradient, 1 / static_cast<double>(part.parts), "mean/" + part.name);
}

std::vector<SlotSpec> exchange_all_but_parts(
    Graph& graph, std::vector<TrainedParameter>& trained,
    const std::function<std::vector<SlotSpec>(std::vector<TrainedParameter>&)>& exchange) {
  std::vector<TrainedParameter> others;
  for (const TrainedParameter& parameter : trained)
    if (parameter.parts == 1) others.push_back(parameter);
  std::vector<SlotSpec> slots = exchange(others);
  auto next = others.begin();
  for (TrainedParameter& parameter : trained) {
    if (parameter.parts == 1)
      parameter = *next++;
    else
      parameter.gradient = gradient_of_mean(graph, parameter);
  }
  return slots;
}

Shardings shardings_of_parts(const Graph& graph, const std::vector<SlotSpec>& slots) {
  Shardings shardings;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::parameter || parts_of_input(graph, input.name) == 1) continue;
    const Sharding& sharding = *graph.sharding(input.value);
    shardings.emplace(input.name, sharding);
    for (const SlotSpec& slot : slots)
      if (slot.name.ends_with("/" + input.name)) shardings.emplace(slot.name, sharding);
  }
  return shardings;
}

void note_parts(TrainingStep& step) {
  for (auto& [name, sharding] : shardings_of_parts(step.graph, step.slots)) {
    for (SlotSpec& slot : step.slots)
      if (slot.name == name) slot.sharding = sharding;
    if (const GraphInput* const input = step.graph.find_input(name)) step.graph.set_sharding(input->value, sharding);
    step.shardings[name] = sharding;
  }
}

bool is_part_along_data(const Sharding& sharding) { return data_axis_of(sharding) != nullptr; }

bool is_part_along_data(const Shardings& shardings, const std::string& state) {
  const auto found = shardings.find(state);
  return found != shardings.end() && is_part_along_data(found->second);
}

}  // namespace weft::step
