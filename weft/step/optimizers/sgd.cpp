// Stochastic gradient descent with momentum, as torch.optim.SGD without dampening (Nesterov: Sutskever et al. 2013,
// section 3), with g the gradient, w the parameter, r the rate:
//   g = g + decay w      v' = momentum v + g      w' = w - r v', or with Nesterov w' = w - r (g + momentum v')
// Slot "velocity" (v). One fused node per parameter; composed ones where the momentum is an input of each step.
#include "weft/ops/ops.h"
#include "weft/step/optimizers/entries.h"
#include "weft/step/optimizers/keys.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

namespace {

void add_with_momentum_schedule(UpdateBuilder& builder, const UpdatedParameter& parameter) {
  Graph& graph = builder.graph();
  const ValueId gradient = builder.decayed_gradient(parameter), momentum = builder.momentum();
  ValueId direction = builder.blend_slot("velocity", parameter.name, gradient, momentum, builder.constant(1));
  if (builder.spec().nesterov) direction = ops::add(graph, gradient, ops::multiply(graph, direction, momentum));
  builder.descend(parameter, direction, parameter.learning_rate);
}

void add_sgd(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters) {
  for (const UpdatedParameter& parameter : parameters) {
    if (builder.spec().momentum_schedule.changes()) {
      add_with_momentum_schedule(builder, parameter);
      continue;
    }
    const ops::SgdOptions options{.momentum = builder.spec().momentum,
                                  .weight_decay = parameter.weight_decay,
                                  .nesterov = builder.spec().nesterov};
    const ValueId velocity = builder.slot("velocity", parameter.name);
    const auto [next, next_velocity] =
        ops::sgd_update(builder.graph(), parameter.value, parameter.gradient, velocity, parameter.learning_rate,
                        options, "update/" + parameter.name, builder.apply());
    builder.set_next(parameter.name, next);
    builder.set_next("velocity", parameter.name, next_velocity);
  }
}

}  // namespace

OptimizerEntry sgd_entry() {
  return {.name = "sgd",
          .summary = "stochastic gradient descent with momentum, as torch.optim.SGD",
          .learning_rate = 0.05,
          .weight_decay = 5e-4,
          .keys = {momentum_key(0.9), {.name = "nesterov", .value = false, .help = "sgd; muon always does"}},
          .build = add_sgd};
}

}  // namespace weft::step
