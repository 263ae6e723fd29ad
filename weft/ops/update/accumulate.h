// Sums over several runs of a step (graph/accumulation.h).
#pragma once

#include "weft/ops/ops.h"

namespace weft::ops {

//   accumulate_update(sum, value, keep[], take[], complete[]) -> sum' = keep * sum + take * value  (is_update)
//       Where keep or take is 0 the other operand alone counts, as of blend_update. `complete` is a scalar input of the
//       graph: in runs in which it is 0 nothing runs that depends on the sum.
ValueId accumulate_update(Graph&, ValueId sum, ValueId value, ValueId keep, ValueId take, ValueId complete,
                          const std::string& name = "");

/// Called by add_update_ops().
void add_accumulate_op(OpRegistry&);

}  // namespace weft::ops
