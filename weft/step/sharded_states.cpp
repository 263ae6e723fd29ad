#include "weft/step/sharded_states.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/passes/ranks/partition.h"
#include "weft/step/data_parallel.h"
#include "weft/step/micro_batches.h"
#include "weft/step/optimizers/ema.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/virtual_ranks.h"

namespace weft::step {

namespace {

bool is_slot_of(const std::string& state, std::string_view slot) {
  return state.starts_with(slot_name(std::string(slot), ""));
}

/// Sums that each rank collects for itself.
bool is_own_sum(const std::string& state, const spec::RunSpec& spec) {
  if (is_slot_of(state, kShardSumSlot)) return true;
  return is_slot_of(state, kGradientSumSlot) && spec.shard.zero < kGradientsShared;
}

bool is_large(const TensorType& type) { return type.dtype == DType::f32 && type.elements() >= kFewestShared; }

/// Evaluations take averages where they take weights and statistics: shared where those are.
bool may_be_shared(const SlotSpec& slot, const spec::RunSpec& spec, const Shardings& shardings) {
  const std::string average = slot_name(kEmaSlot, "");
  if (slot.name.starts_with(average)) return is_shared(shardings, slot.name.substr(average.size()));
  return !is_own_sum(slot.name, spec) && is_large(slot.type);
}

/// Those that images decide are made whole.
bool may_be_shared(const models::ParameterSpec& parameter) {
  return parameter.trainable && parameter.initializer.kind != models::Initializer::Kind::whitening &&
         is_large({DType::f32, parameter.shape, {}});
}

Sharding sharding_of(const Shape& whole, int ranks) { return {.whole = whole, .flat = MeshAxis{kDataAxis, ranks}}; }

passes::PartitionOptions options_of(const TrainingStep& step, const spec::RunSpec& spec, int ranks) {
  passes::PartitionOptions options{.axis = {kDataAxis, ranks},
                                   .states = {step.shardings.begin(), step.shardings.end()}};
  options.of_each_rank = {"seed", kStop, kShardIndex};
  for (const SlotSpec& slot : step.slots)
    if (is_own_sum(slot.name, spec)) options.of_each_rank.insert(slot.name);
  // The tree of virtual ranks is the all-reduce's.
  options.scatters = spec.virtual_ranks == 0;
  if (const ValueId loss = step.graph.find_value("loss"); loss.valid())
    options.last_of_forward = step.graph.value(loss).producer;
  return options;
}

bool has_any(const Graph& graph, const Shardings& shardings) {
  return std::any_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](const GraphInput& input) { return is_shared(shardings, input.name); });
}

}  // namespace

void share_states(TrainingStep& step, const spec::RunSpec& spec, int ranks) {
  if (spec.shard.zero == 0 || ranks == 1) return;
  if (spec.shard.zero >= kWeightsShared)
    for (const models::ParameterSpec& parameter : step.parameters)
      if (may_be_shared(parameter)) step.shardings.emplace(parameter.name, sharding_of(parameter.shape, ranks));
  for (SlotSpec& slot : step.slots) {
    if (!may_be_shared(slot, spec, step.shardings)) continue;
    slot.sharding = sharding_of(slot.type.shape, ranks);
    slot.type.shape = part_shape(*slot.sharding);
    step.shardings.emplace(slot.name, *slot.sharding);
  }
  passes::PartitionOptions options = options_of(step, spec, ranks);
  if (has_any(step.graph, step.shardings)) step.graph = passes::partition(step.graph, options);
  options.last_of_forward = {};
  if (step.update && has_any(*step.update, step.shardings)) step.update = passes::partition(*step.update, options);
}

bool shares_weights(const TrainingStep& step) {
  if (step.pipeline) return true;
  return std::any_of(step.parameters.begin(), step.parameters.end(),
                     [&](const models::ParameterSpec& parameter) { return is_shared(step.shardings, parameter.name); });
}

int64_t gathered_bytes(const TrainingStep& step) {
  if (!shares_weights(step)) return 0;
  int64_t bytes = 0;
  for (const models::ParameterSpec& parameter : step.parameters)
    bytes += align_up(byte_size(DType::f32, parameter.shape.elements()));
  return bytes;
}

void require_sharers(const spec::RunSpec& spec, int ranks) {
  require_mesh(spec, ranks);
  if (spec.shard.zero == 0 || ranks > 1) return;
  fail(ErrorKind::usage,
       "shard.zero = {} with one rank, which has nobody to share its states with; start several, such as `weft launch "
       "-n 2 -- train ...`, or set shard.zero=0",
       spec.shard.zero);
}

}  // namespace weft::step
