// Look-ahead (Zhang et al. 2019, "Lookahead optimizer: k steps forward, 1 step back", algorithm 1) around any
// optimiser: in every k-th update, with w the weights as the optimiser leaves them,
//   s' = s + alpha (w - s)      w' = s'
// and s' = s, w' = w in all others. Slot "slow" (s), which begins as a copy of the weights. Scalar inputs "synchronise"
// (1 in a k-th update, else 0) and "slow_share" (alpha then, else 0). That alpha may fall over the run is from Jordan
// 2024, section 3.4.
#include "weft/step/optimizers/lookahead.h"

#include <cmath>

#include "weft/ops/ops.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

double lookahead_alpha(const spec::LookaheadSpec& spec, int64_t step, int64_t total_steps) {
  if (spec.end_alpha < 0) return spec.alpha;
  const double done = static_cast<double>(step + 1) / static_cast<double>(total_steps);
  return spec.alpha + (spec.end_alpha - spec.alpha) * std::pow(done, spec.power);
}

void add_lookahead(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters) {
  Graph& graph = builder.graph();
  const ValueId now = builder.scalar("synchronise");  // 1 or 0
  const auto rest_of = [&](ValueId share) { return ops::add_scalar(graph, ops::negate(graph, share), 1); };
  const ValueId share = builder.scalar("slow_share");
  const ValueId keep_slow = rest_of(share), keep_fast = rest_of(now);
  for (const UpdatedParameter& parameter : parameters) {
    const ValueId fast = builder.latest(parameter.name);
    const ValueId slow = builder.blend(builder.slot("slow", parameter.name, /*copies=*/true), fast, keep_slow, share,
                                       "update/slow/" + parameter.name);
    builder.set_next("slow", parameter.name, slow);
    builder.set_next(parameter.name, builder.blend(fast, slow, keep_fast, now, "synchronise/" + parameter.name));
  }
}

}  // namespace weft::step
