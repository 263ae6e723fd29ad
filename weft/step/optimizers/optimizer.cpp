// From a recipe's [optimizer], [clip], [lookahead] and [ema] to the nodes of the update.
#include "weft/step/optimizers/optimizer.h"

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/tensor_parts.h"
#include "weft/step/optimizers/loss_scaling.h"
#include "weft/step/optimizers/update_builder.h"
#include "weft/tensor/element.h"

namespace weft::step {

namespace {

/// Of what ranks share the whole, or a copy of this rank's part.
Tensor start_of(const SlotSpec& slot, const State& state) {
  const TensorType type{slot.type.dtype, slot.sharding ? slot.sharding->whole : slot.type.shape, {}};
  Tensor tensor = slot.copy_of.empty() ? Tensor(type) : state.plain(slot.copy_of);
  if (slot.start != 0)
    for (int64_t i = 0; i < tensor.elements(); ++i) store_element(tensor.dtype(), tensor.data(), i, slot.start);
  return tensor;
}

/// Of what the rank has of a state: all of it, its part of some dimension, or what it wants.
Tensor own_part(const Tensor& start, const Sharding& sharding, const Mesh& mesh, int rank) {
  if (start.shape() == part_shape(sharding)) return start;
  if (start.shape() == sharding.whole) return part_of(start, sharding, coordinate_of(sharding, mesh, rank));
  const Sharding within = flat_of_part(sharding);
  return part_of(start, within, coordinate_of(within, mesh, rank));
}

}  // namespace

void start_slots(const std::vector<SlotSpec>& slots, State& state, const Mesh& mesh, int rank) {
  for (const SlotSpec& slot : slots) {
    if (slot.sharding && !is_held(*slot.sharding, rank)) continue;
    if (slot.copy_of.empty() && slot.start == 0) {
      state.set(slot.name, Tensor(slot.type));
      continue;
    }
    Tensor start = start_of(slot, state);
    state.set(slot.name, slot.sharding ? own_part(start, *slot.sharding, mesh, rank) : std::move(start));
  }
}

std::vector<SlotSpec> add_update(Graph& graph, const spec::RunSpec& spec,
                                 const std::vector<TrainedParameter>& parameters,
                                 const std::vector<std::string>& statistics, const std::string& counter,
                                 const Entries& entries) {
  const OptimizerEntry* optimizer = find_entry(entries.optimizers, spec.optimizer.name);
  if (optimizer == nullptr)
    fail(ErrorKind::usage, "there is no optimizer '{}'{}", spec.optimizer.name,
         suggestion(spec.optimizer.name, names_of(entries.optimizers)));
  std::vector<TrainedParameter> clipped = parameters;
  std::vector<SlotSpec> slots;
  UpdateBuilder builder(graph, spec.optimizer, counter);
  if (spec::scales_loss(spec)) unscale_gradients(builder, spec.loss_scaling, clipped, slots);
  clip_gradients(graph, spec.clip, spec.metrics.gradient_norm || spec.metrics.noise_every > 0, clipped);
  const std::vector<UpdatedParameter> updated = assign_groups(builder, clipped);
  optimizer->build(builder, updated);
  if (spec.lookahead.steps > 0) add_lookahead(builder, updated);
  if (spec.ema.decay > 0) {
    std::vector<std::string> averaged = statistics;
    for (const TrainedParameter& parameter : parameters) averaged.push_back(parameter.name);
    add_ema(builder, averaged);
  }
  const std::vector<SlotSpec> more = builder.finish();
  slots.insert(slots.end(), more.begin(), more.end());
  return slots;
}

std::vector<SlotSpec> add_optimizer(Graph& graph, const spec::OptimizerSpec& spec,
                                    const std::vector<TrainedParameter>& parameters, const Entries& entries) {
  spec::RunSpec run;
  run.optimizer = spec;
  return add_update(graph, run, without_frozen(spec, parameters), {}, "step", entries);
}

}  // namespace weft::step
