// Micikevicius et al. 2018, "Mixed precision training", section 3.2, with the rule of torch.cuda.amp.GradScaler: with s
// the scale, L the loss, g the gradients of s L,
//   g / s updates the weights; where an element of it is not finite, nothing does, and s' = s backoff_factor
//   after growth_interval steps in a row without such an element s' = s growth_factor
// Slots "loss_scale/scale" (s), ".../streak" (steps since the last change; negative: skipped in a row), ".../updates"
// and
// ".../skipped" (steps with and without an update).
#include "weft/step/optimizers/loss_scaling.h"

#include <algorithm>
#include <span>

#include "weft/ops/update/loss_scaling.h"

namespace weft::step {

namespace {

std::string state_name(const char* what) { return slot_name("loss_scale", what); }

ValueId state_input(Graph& graph, const char* what, DType dtype) {
  if (const GraphInput* input = graph.find_input(state_name(what))) return input->value;
  return graph.add_input(InputKind::state, state_name(what), TensorType{dtype, {}, {}});
}

/// 1 where the flag is 1 on each of the ranks, else 0: all of them shall do the same.
ValueId on_all_ranks(Graph& graph, ValueId flag, int64_t ranks) {
  const ValueId count = ops::all_reduce(graph, flag, "sum", "parts_are_finite.of_ranks");
  const ValueId nearly = ops::constant(graph, {}, static_cast<double>(ranks) - 0.5);
  return ops::greater(graph, count, nearly, "parts_are_finite.on_all");
}

ValueId scale_input(Graph& graph) { return state_input(graph, "scale", DType::f32); }

}  // namespace

ValueId scaled_loss(Graph& graph, const spec::RunSpec& spec, ValueId loss) {
  return spec::scales_loss(spec) ? ops::multiply(graph, loss, scale_input(graph), "scaled_loss") : loss;
}

void unscale_gradients(UpdateBuilder& builder, const spec::LossScalingSpec& spec,
                       std::vector<TrainedParameter>& parameters, std::vector<SlotSpec>& slots) {
  Graph& graph = builder.graph();
  const ops::LossScaleState state{scale_input(graph), state_input(graph, "streak", DType::i64),
                                  state_input(graph, "updates", DType::i64), state_input(graph, "skipped", DType::i64)};
  ValueId finite, of_parts;
  int64_t parts = 1;
  const auto both = [&](ValueId one, ValueId other) {
    return one.valid() ? ops::multiply(graph, one, other, "gradients_are_finite") : other;
  };
  for (TrainedParameter& parameter : parameters) {
    const ops::UnscaledGradient unscaled =
        ops::unscale_gradient(graph, parameter.gradient, state.scale, parameter.name + ".unscaled_gradient");
    parameter.gradient = unscaled.gradient;
    parts = std::max(parts, parameter.parts);
    ValueId& into = parameter.parts > 1 ? of_parts : finite;
    into = both(into, unscaled.finite);
  }
  if (of_parts.valid()) finite = both(finite, on_all_ranks(graph, of_parts, parts));
  if (!finite.valid()) finite = builder.constant(1);
  builder.apply_where(finite, state.updates);
  const bool is_fixed = spec.mode == "fixed";
  const ops::LossScaleState next = ops::loss_scale_update(graph, state, finite,
                                                          {.growth_factor = is_fixed ? 1 : spec.growth_factor,
                                                           .backoff_factor = is_fixed ? 1 : spec.backoff_factor,
                                                           .growth_interval = spec.growth_interval},
                                                          "update/loss_scale");
  const auto add = [&](const char* what, DType dtype, ValueId value, double start) {
    slots.push_back({.name = state_name(what), .type = {dtype, {}, {}}, .copy_of = {}, .start = start});
    graph.add_update(slots.back().name, value);
  };
  add("scale", DType::f32, next.scale, spec.scale);
  add("streak", DType::i64, next.streak, 0);
  add("updates", DType::i64, next.updates, 0);
  add("skipped", DType::i64, next.skipped, 0);
}

LossScale::LossScale(const State& state)
    : state_(state),
      scale_(state_name("scale")),
      streak_(state_name("streak")),
      updates_(state_name("updates")),
      skipped_(state_name("skipped")),
      is_used_(state.has(scale_)) {}

double LossScale::scale() const {
  float scale = 0;
  state_.read(scale_, 0, std::as_writable_bytes(std::span(&scale, 1)));
  return static_cast<double>(scale);
}

int64_t LossScale::count(const std::string& name) const {
  int64_t count = 0;
  state_.read(name, 0, std::as_writable_bytes(std::span(&count, 1)));
  return count;
}

}  // namespace weft::step
