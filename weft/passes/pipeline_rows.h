// The rows that the table of all passes and that of inference share. Each is written once. Both tables are put together
// from them, in the same order.
#pragma once

#include <functional>

#include "weft/passes/pipeline.h"

namespace weft::passes {

/// For passes that ask nothing of the machine.
std::function<Graph(const Graph&, const PassContext&)> machine_independent(Graph (*pass)(const Graph&));

namespace rows {

// In the order of the tables.
Pass eliminate_dead_code();
Pass form_integer_products();
Pass fold_constants();
Pass eliminate_common_subexpressions();
Pass fold_tensors();
Pass eliminate_leftovers();
Pass pool_before_relu();
Pass fuse_requantize();
Pass join_groups();
Pass fuse_bias();
Pass fold_batch_norm();
Pass fuse_attention();
Pass lower_precision();
Pass mark_winograd();
Pass fuse_batch_norm();
Pass fuse_conv_epilogue();
Pass fuse_elementwise();
Pass assign_layouts();
Pass fold_casts();
Pass copy_between_spaces();
Pass mark_in_place();

}  // namespace rows

}  // namespace weft::passes
