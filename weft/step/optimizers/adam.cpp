// Adam (Kingma and Ba 2015, algorithm 1) with either form of weight decay (Loshchilov and Hutter 2019, algorithm 2), as
// torch.optim.Adam (L2) and torch.optim.AdamW (decoupled), with g the gradient, w the parameter, r the rate:
//   L2: g = g + decay w                decoupled: w = w - r decay w
//   m' = beta1 m + (1 - beta1) g       v' = beta2 v + (1 - beta2) g^2
//   w' = w - r m' / (1 - beta1^t) / (sqrt(v' / (1 - beta2^t)) + epsilon)
// Slots "first_moment" (m) and "second_moment" (v). One fused node per parameter.
#include "weft/ops/ops.h"
#include "weft/step/optimizers/entries.h"
#include "weft/step/optimizers/keys.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

void add_adam(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters, bool decoupled) {
  for (const UpdatedParameter& parameter : parameters) {
    const ops::AdamWOptions options{.beta1 = builder.spec().beta1,
                                    .beta2 = builder.spec().beta2,
                                    .epsilon = builder.spec().epsilon,
                                    .weight_decay = parameter.weight_decay,
                                    .decoupled = decoupled};
    const ValueId first = builder.slot("first_moment", parameter.name);
    const ValueId second = builder.slot("second_moment", parameter.name);
    const auto [next, next_first, next_second] =
        ops::adamw_update(builder.graph(), parameter.value, parameter.gradient, first, second, parameter.learning_rate,
                          builder.counter(), options, "update/" + parameter.name, builder.apply());
    builder.set_next(parameter.name, next);
    builder.set_next("first_moment", parameter.name, next_first);
    builder.set_next("second_moment", parameter.name, next_second);
  }
}

OptimizerEntry adam_entry() {
  return {.name = "adam",
          .summary = "Kingma and Ba 2015 with L2 decay, as torch.optim.Adam",
          .learning_rate = 1e-3,
          .weight_decay = 0,
          .keys = adam_keys(),
          .build = [](auto& builder, const auto& parameters) { add_adam(builder, parameters, /*decoupled=*/false); }};
}

OptimizerEntry adamw_entry() {
  return {.name = "adamw",
          .summary = "Loshchilov and Hutter 2019, as torch.optim.AdamW",
          .learning_rate = 1e-3,
          .weight_decay = 1e-2,
          .keys = adam_keys(),
          .build = [](auto& builder, const auto& parameters) { add_adam(builder, parameters, /*decoupled=*/true); }};
}

}  // namespace weft::step
