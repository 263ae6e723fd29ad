// LARS (You, Gitman and Ginsburg 2017, "Large batch training of convolutional networks", algorithm 1), with g the
// gradient, w the parameter, r the rate, eta the trust coefficient:
//   q = eta |w| / (|g| + decay |w|)    1 where |w| or |g| is 0
//   v' = momentum v + r q (g + decay w)
//   w' = w - v'
// Bias and norm take q = 1 and no decay, as in MLPerf's reference. Slot "velocity" (v).
#include "weft/ops/ops.h"
#include "weft/step/optimizers/entries.h"
#include "weft/step/optimizers/keys.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

namespace {

ValueId trust(UpdateBuilder& builder, const UpdatedParameter& parameter) {
  Graph& graph = builder.graph();
  const ValueId weight = ops::sqrt(graph, squared_norm_of_parts(graph, parameter.value, parameter.parts));
  const ValueId gradient = ops::sqrt(graph, squared_norm_of_parts(graph, parameter.gradient, parameter.parts));
  const ValueId zero = builder.constant(0);
  const ValueId both = ops::multiply(graph, ops::greater(graph, weight, zero), ops::greater(graph, gradient, zero));
  const ValueId neither = ops::add_scalar(graph, ops::negate(graph, both), 1);
  const ValueId top = ops::multiply_scalar(graph, weight, builder.spec().trust_coefficient);
  const ValueId bottom = ops::add(graph, gradient, ops::multiply_scalar(graph, weight, parameter.weight_decay));
  // both * top / bottom + neither, with nothing divided by 0.
  const ValueId ratio = ops::divide(graph, ops::multiply(graph, both, top), ops::add(graph, bottom, neither));
  return ops::add(graph, ratio, neither, "trust_ratio");
}

void add_lars(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters) {
  Graph& graph = builder.graph();
  for (const UpdatedParameter& parameter : parameters) {
    ValueId rate = parameter.learning_rate;
    if (parameter.adapts) rate = ops::multiply(graph, rate, trust(builder, parameter));
    const ValueId velocity =
        builder.blend_slot("velocity", parameter.name, builder.decayed_gradient(parameter), builder.momentum(), rate);
    builder.descend(parameter, velocity, builder.constant(1));
  }
}

}  // namespace

OptimizerEntry lars_entry() {
  return {.name = "lars",
          .summary = "You, Gitman and Ginsburg 2017: SGD for large batches",
          .learning_rate = 1,
          .weight_decay = 1e-4,
          .keys = {momentum_key(0.9),
                   {.name = "trust_coefficient", .value = 0.001, .low = kAboveZero, .high = 1e3, .help = "lars"}},
          .build = add_lars};
}

}  // namespace weft::step
