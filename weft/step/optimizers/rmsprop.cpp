// RMSprop (Tieleman and Hinton 2012, lecture 6e; centered: Graves 2013, section 4.2), as torch.optim.RMSprop, with g
// the gradient, w the parameter, r the rate, a the smoothing:
//   g = g + decay w      s' = a s + (1 - a) g^2      centered: c' = a c + (1 - a) g
//   d = g / (sqrt(s' - c'^2) + epsilon), with c' = 0 where not centered
//   w' = w - r d, or with momentum b' = momentum b + d and w' = w - r b'
// Slots "square_average" (s), "gradient_average" (c), "velocity" (b).
#include "weft/ops/ops.h"
#include "weft/step/optimizers/entries.h"
#include "weft/step/optimizers/keys.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

namespace {

void add_rmsprop(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters) {
  Graph& graph = builder.graph();
  const spec::OptimizerSpec& spec = builder.spec();
  for (const UpdatedParameter& parameter : parameters) {
    const ValueId gradient = builder.decayed_gradient(parameter);
    ValueId spread =
        builder.average_slot("square_average", parameter.name, ops::square(graph, gradient), spec.smoothing);
    if (spec.centered) {
      const ValueId mean = builder.average_slot("gradient_average", parameter.name, gradient, spec.smoothing);
      // Rounding may leave a variance just below zero.
      spread = ops::maximum(graph, ops::subtract(graph, spread, ops::square(graph, mean)), builder.constant(0));
    }
    const ValueId root = ops::add_scalar(graph, ops::sqrt(graph, spread), spec.epsilon);
    ValueId direction = ops::divide(graph, gradient, root, parameter.name + ".direction");
    if (spec.momentum > 0 || spec.momentum_schedule.changes())
      direction = builder.blend_slot("velocity", parameter.name, direction, builder.momentum(), builder.constant(1));
    builder.descend(parameter, direction, parameter.learning_rate);
  }
}

}  // namespace

OptimizerEntry rmsprop_entry() {
  return {.name = "rmsprop",
          .summary = "Tieleman and Hinton 2012, as torch.optim.RMSprop",
          .learning_rate = 1e-3,
          .weight_decay = 0,
          .keys = {momentum_key(0),
                   epsilon_key(),
                   {.name = "smoothing",
                    .value = 0.99,
                    .low = 0,
                    .high = 0.9999999,
                    .help = "rmsprop: share of the mean of squares kept"},
                   {.name = "centered", .value = false, .help = "rmsprop: by the variance of the gradient"}},
          .build = add_rmsprop};
}

}  // namespace weft::step
