// LAMB (You et al. 2020, "Large batch optimization for deep learning: training BERT in 76 minutes", algorithm 2, with
// phi the identity), with g the gradient, w the parameter, r the rate:
//   m' = beta1 m + (1 - beta1) g       v' = beta2 v + (1 - beta2) g^2
//   u = m' / (1 - beta1^t) / (sqrt(v' / (1 - beta2^t)) + epsilon) + decay w
//   w' = w - r |w| / |u| u             the ratio is 1 where |w| or |u| is 0
// Bias and norm take the ratio 1 and no decay, as in the authors' code for BERT. Slots "first_moment" (m) and
// "second_moment" (v).
#include "weft/ops/ops.h"
#include "weft/step/optimizers/entries.h"
#include "weft/step/optimizers/keys.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

namespace {

/// |a| / |b|, 1 where either is 0.
ValueId norm_ratio(UpdateBuilder& builder, ValueId a, ValueId b, int64_t parts) {
  Graph& graph = builder.graph();
  const ValueId top = squared_norm_of_parts(graph, a, parts), bottom = squared_norm_of_parts(graph, b, parts);
  const ValueId zero = builder.constant(0);
  const ValueId both = ops::multiply(graph, ops::greater(graph, top, zero), ops::greater(graph, bottom, zero));
  const ValueId neither = ops::add_scalar(graph, ops::negate(graph, both), 1);
  // Where a norm is 0 this is sqrt(1 / 1): with both = 0 the sums are 0 or more, plus 1.
  const auto guarded = [&](ValueId square) { return ops::add(graph, ops::multiply(graph, square, both), neither); };
  return ops::sqrt(graph, ops::divide(graph, guarded(top), guarded(bottom)), "trust_ratio");
}

void add_lamb(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters) {
  Graph& graph = builder.graph();
  const spec::OptimizerSpec& spec = builder.spec();
  for (const UpdatedParameter& parameter : parameters) {
    const ValueId gradient = parameter.gradient;
    const ValueId first = builder.average_slot("first_moment", parameter.name, gradient, spec.beta1);
    const ValueId second =
        builder.average_slot("second_moment", parameter.name, ops::square(graph, gradient), spec.beta2);
    const ValueId mean = ops::divide(graph, first, builder.bias_correction(spec.beta1));
    const ValueId root = ops::sqrt(graph, ops::divide(graph, second, builder.bias_correction(spec.beta2)));
    ValueId direction = ops::divide(graph, mean, ops::add_scalar(graph, root, spec.epsilon));
    if (parameter.weight_decay != 0)
      direction = ops::add(graph, direction, ops::multiply_scalar(graph, parameter.value, parameter.weight_decay));
    ValueId rate = parameter.learning_rate;
    if (parameter.adapts)
      rate = ops::multiply(graph, rate, norm_ratio(builder, parameter.value, direction, parameter.parts));
    builder.descend(parameter, direction, rate);
  }
}

}  // namespace

OptimizerEntry lamb_entry() {
  return {.name = "lamb",
          .summary = "You et al. 2020: Adam for large batches",
          .learning_rate = 1e-3,
          .weight_decay = 1e-2,
          .keys = adam_keys(),
          .build = add_lamb};
}

}  // namespace weft::step
