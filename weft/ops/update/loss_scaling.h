// Loss scaling: gradients brought back to their own scale, and the rule that the scale follows.
#pragma once

#include "weft/ops/ops.h"

namespace weft::ops {

//   unscale_gradient(gradient, scale[]) -> (gradient / scale, finite[]): finite is 1 where all elements of the result
//       are finite numbers, else 0
struct UnscaledGradient {
  ValueId gradient, finite;
};
UnscaledGradient unscale_gradient(Graph&, ValueId gradient, ValueId scale, const std::string& name = "");

//   loss_scale_update(scale[], streak i64[], updates i64[], skipped i64[], finite[])
//       {growth_factor=2.0, backoff_factor=0.5, growth_interval=2000} -> the successors of the first four  (is_update)
//       The rule of torch.cuda.amp.GradScaler. streak counts steps without an overflow since the last change of the
//       scale or, negative, with one in a row; updates and skipped count steps without and with one.
struct LossScaleOptions {
  double growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
};
struct LossScaleState {
  ValueId scale, streak, updates, skipped;
};
LossScaleState loss_scale_update(Graph&, const LossScaleState& state, ValueId finite, const LossScaleOptions& options,
                                 const std::string& name = "");

/// Called by add_update_ops().
void add_loss_scaling_ops(OpRegistry&);

}  // namespace weft::ops
