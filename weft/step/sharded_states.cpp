#include "weft/step/sharded_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/graph/tensor_parts.h"
#include "weft/passes/ranks/gather_states.h"
#include "weft/passes/ranks/partition.h"
#include "weft/step/data_parallel.h"
#include "weft/step/experts.h"
#include "weft/step/global_draws.h"
#include "weft/step/micro_batches.h"
#include "weft/step/optimizers/ema.h"
#include "weft/step/virtual_ranks.h"

namespace weft::step {

namespace {

/// Of messages of evaluations, behind those of steps.
constexpr int64_t kFirstGatherTag = int64_t{1} << 19;

bool is_slot_of(const std::string& state, std::string_view slot) {
  return state.starts_with(slot_name(std::string(slot), ""));
}

bool is_large(const TensorType& type) { return type.dtype == DType::f32 && type.elements() >= kFewestShared; }

/// Sums that each rank collects for itself.
bool is_own_sum(const SlotSpec& slot, const spec::RunSpec& spec) {
  if (is_slot_of(slot.name, kShardSumSlot)) return true;
  const bool is_flat = slot.sharding && slot.sharding->flat;
  if (is_slot_of(slot.name, kMicroSumSlot)) return !is_flat && !shares_sum(spec, slot.type);
  return is_slot_of(slot.name, kGradientSumSlot) && spec.shard.zero < kGradientsShared;
}

/// Whether ranks along the axis data share the state.
bool is_flat(const Shardings& shardings, const std::string& state) {
  const auto found = shardings.find(state);
  return found != shardings.end() && found->second.flat;
}

/// Evaluations take averages where they take weights and statistics: shared where those are.
bool may_be_shared(const SlotSpec& slot, const spec::RunSpec& spec, const Shardings& shardings) {
  const std::string average = slot_name(kEmaSlot, "");
  if (slot.name.starts_with(average)) return is_flat(shardings, slot.name.substr(average.size()));
  return !is_own_sum(slot, spec) && is_large(slot.type) && !is_part_along_data(shardings, slot.name);
}

/// Of what ranks along the axis tensor have split already, or one stage has, each part is shared. A whole tensor has
/// this shape.
StateSharding shared_over_data(const Shardings& splits, const std::string& state, const Shape& whole, int ranks) {
  const auto split = splits.find(state);
  StateSharding sharding = split == splits.end() ? StateSharding(Sharding{.whole = whole}) : split->second;
  sharding.flat = MeshAxis{kDataAxis, ranks};
  return sharding;
}

/// Those that images decide are made whole. `shape`: of what a rank would have else.
bool may_be_shared(const models::ParameterSpec& parameter, const Shape& shape) {
  return parameter.trainable && parameter.initializer.kind != models::Initializer::Kind::whitening &&
         is_large({DType::f32, shape, {}});
}

passes::PartitionOptions options_of(const TrainingStep& step, const spec::RunSpec& spec, int ranks) {
  passes::PartitionOptions options{.axis = {kDataAxis, ranks}, .states = {}};
  options.of_each_rank = {"seed", kStop, kShardIndex, kDrawPlace};
  for (int64_t m = 0; m < micro_batches_of(spec); ++m) options.of_each_rank.insert(name_of_micro_place(m));
  for (const auto& [name, sharding] : step.shardings)
    if (sharding.flat)
      options.states.emplace(name, flat_of_part(sharding));
    else if (is_part_along_data(step.shardings, name))
      options.of_each_rank.insert(name);
  for (const SlotSpec& slot : step.slots)
    if (is_own_sum(slot, spec)) options.of_each_rank.insert(slot.name);
  // The tree of virtual ranks is the all-reduce's.
  options.scatters = spec.virtual_ranks == 0;
  if (const ValueId loss = step.graph.find_value("loss"); loss.valid())
    options.last_of_forward = step.graph.value(loss).producer;
  return options;
}

/// "mesh.tensor = 2 and mesh.pipeline = 4"
std::string other_axes(const spec::RunSpec& spec) {
  std::string text;
  for (const auto& [name, size] : {std::pair("mesh.tensor", spec.mesh.tensor), {"mesh.pipeline", spec.mesh.pipeline}})
    if (size > 1) text += fmt::format("{}{} = {}", text.empty() ? "" : " and ", name, size);
  return text;
}

bool has_any(const Graph& graph, const Shardings& shardings) {
  return std::any_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](const GraphInput& input) { return is_flat(shardings, input.name); });
}

}  // namespace

void share_states(TrainingStep& step, const spec::RunSpec& spec, int ranks) {
  if (spec.shard.zero == 0 || ranks == 1) return;
  if (spec.shard.zero >= kWeightsShared)
    for (const models::ParameterSpec& parameter : step.parameters) {
      if (is_part_along_data(step.shardings, parameter.name)) continue;
      StateSharding sharding = shared_over_data(step.shardings, parameter.name, parameter.shape, ranks);
      if (may_be_shared(parameter, flat_of_part(sharding).whole)) step.shardings[parameter.name] = std::move(sharding);
    }
  for (SlotSpec& slot : step.slots) {
    if (!may_be_shared(slot, spec, step.shardings)) continue;
    slot.sharding = shared_over_data(step.shardings, slot.name, slot.type.shape, ranks);
    slot.type.shape = part_shape(*slot.sharding);
    step.shardings[slot.name] = *slot.sharding;
  }
  passes::PartitionOptions options = options_of(step, spec, ranks);
  if (has_any(step.graph, step.shardings)) step.graph = passes::partition(step.graph, options);
  options.last_of_forward = {};
  if (step.update && has_any(*step.update, step.shardings)) step.update = passes::partition(*step.update, options);
}

bool shares_sum(const spec::RunSpec& spec, const TensorType& gradient) {
  return spec.shard.zero >= kGradientsShared && is_large(gradient);
}

bool shares_weights(const TrainingStep& step) {
  if (step.pipeline) return true;
  return std::any_of(step.parameters.begin(), step.parameters.end(),
                     [&](const models::ParameterSpec& parameter) { return is_shared(step.shardings, parameter.name); });
}

bool gathers_along_data(const TrainingStep& step) {
  if (step.pipeline || !shares_weights(step)) return false;
  return std::all_of(step.parameters.begin(), step.parameters.end(), [&](const models::ParameterSpec& parameter) {
    const auto shared = step.shardings.find(parameter.name);
    return shared == step.shardings.end() ||
           (shared->second.flat && shared->second.split.empty() && shared->second.on.empty());
  });
}

bool gathers_in_evaluation(const TrainingStep& step, const spec::RunSpec& spec, int64_t memory_bytes) {
  if (!shares_weights(step)) return false;
  if (gathers_along_data(step)) return spec.evaluation.weights != "once";
  return gathers_divided_layers(spec, static_cast<double>(whole_weight_bytes(step)), static_cast<double>(memory_bytes));
}

bool gathers_divided_layers(const spec::RunSpec& spec, double weight_bytes, double memory_bytes) {
  if (spec.evaluation.weights != "auto") return spec.evaluation.weights == "by_layer";
  return !spec.memory_limit.empty() || weight_bytes > memory_bytes / 4;
}

Graph gathering_evaluation(const Graph& evaluation, const TrainingStep& step, int rank) {
  std::map<std::string, passes::GatheredState> states;
  for (const models::ParameterSpec& parameter : step.parameters) {
    const auto found = step.shardings.find(parameter.name);
    if (found == step.shardings.end() || evaluation.find_input(parameter.name) == nullptr) continue;
    const StateSharding& sharding = found->second;
    passes::GatheredState state{.sharding = static_cast<const Sharding&>(sharding),  // without the ranks that have it
                                .is_held = is_held(sharding, rank)};
    std::vector<int64_t> with, without;  // of the stages that have the same part of each batch and layer
    for (const int other : step.mesh.group_of(rank, kPipelineAxis))
      (is_held(sharding, other) ? with : without).push_back(other);
    if (!state.is_held)
      state.from = with.front();
    else if (with.front() == rank)
      state.to = without;
    states.emplace(parameter.name, std::move(state));
  }
  return passes::gather_states(evaluation, states, kFirstGatherTag);
}

int64_t whole_weight_bytes(const TrainingStep& step) {
  if (!shares_weights(step)) return 0;
  int64_t bytes = 0;
  for (const models::ParameterSpec& parameter : step.parameters)
    bytes += align_up(byte_size(DType::f32, parameter.shape.elements()));
  return bytes;
}

int64_t gathered_bytes(const TrainingStep& step, const spec::RunSpec& spec, int64_t memory_bytes) {
  return gathers_in_evaluation(step, spec, memory_bytes) ? 0 : whole_weight_bytes(step);
}

void require_sharers(const spec::RunSpec& spec, int ranks, const RankStart& start) {
  require_mesh(spec, ranks, start);
  if (spec.shard.zero == 0 || data_ranks(spec, ranks) > 1) return;
  const int64_t wanted = 2 * spec.mesh.tensor * spec.mesh.pipeline;
  if (ranks > 1)
    fail(ErrorKind::usage,
         "shard.zero = {} with {} on {} ranks: states are shared along mesh.data, and one rank is left there; {}, or a "
         "multiple of them, or set shard.zero=0",
         spec.shard.zero, other_axes(spec), ranks, start.of(wanted));
  fail(ErrorKind::usage,
       "shard.zero = {} with one rank, which has nobody to share its states with; {}, or more of them, or set "
       "shard.zero=0",
       spec.shard.zero, start.of(wanted));
}

}  // namespace weft::step
