// Sums of values that come one after the other, in the order of a balanced binary tree.
#pragma once

#include "weft/ops/ops.h"

namespace weft::ops {

//   tree_sum_update(value, index i64[], partial...) -> partial'...  (is_update; all f32, of one shape)
//       Of values that come in turn, number `index` from 0 on: they are summed as ((v0 + v1) + (v2 + v3)) + ..., each
//       two neighbours as soon as both are there, as a binary counter carries. partial[j] keeps the sum of 2^j values
//       until its neighbour has come. With n partials the last of 2^n values leaves the sum of all in the last partial;
//       a value that is alone is its own sum. What the partials hold before value 0 does not matter.
std::vector<ValueId> tree_sum_update(Graph&, ValueId value, ValueId index, const std::vector<ValueId>& partials,
                                     const std::string& name = "");

/// Which partial value `index` of such a sum ends in, and how many of the partials before it join on the way.
struct TreeSumStep {
  int joined = 0, target = 0;
};
TreeSumStep tree_sum_step(int64_t index, int partials);

/// Called by add_update_ops().
void add_tree_sum_op(OpRegistry&);

}  // namespace weft::ops
