// The exponential moving average of the weights (Polyak and Juditsky 1992; as tf.train.ExponentialMovingAverage): after
// each update, with w the weights and d the decay of this update (a scalar input),
//   e' = d e + (1 - d) w
// Running statistics are averaged alike, since they belong to the weights. Slot "ema" (e), which begins as a copy.
#include "weft/step/optimizers/ema.h"

#include <algorithm>

#include "weft/ops/ops.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

void add_ema(UpdateBuilder& builder, const std::vector<std::string>& names) {
  Graph& graph = builder.graph();
  const ValueId keep = builder.scalar("ema_decay");
  const ValueId take = ops::add_scalar(graph, ops::negate(graph, keep), 1);
  for (const std::string& name : names) {
    const ValueId average = builder.slot(kEmaSlot, name, /*copies=*/true);
    builder.set_next(kEmaSlot, name, builder.blend(average, builder.latest(name), keep, take, "update/ema/" + name));
  }
}

double ema_decay(const spec::EmaSpec& spec, int64_t step) {
  if (!spec.warmup) return spec.decay;
  return std::min(spec.decay, static_cast<double>(1 + step) / static_cast<double>(10 + step));
}

State averaged_state(const State& state) {
  State averaged;
  for (const std::string& name : state.names()) {
    if (name.starts_with(kSlotPrefix)) continue;
    const std::string average = slot_name(kEmaSlot, name);
    averaged.share(name, state, state.has(average) ? average : name);
  }
  return averaged;
}

}  // namespace weft::step
