// What the two files of the norm family share.
#pragma once

#include "weft/graph/op_def.h"

namespace weft::ops {

void add_layer_norm_ops(OpRegistry&);

/// What is added to a variance before its root: finite, at least 0.
void require_epsilon(const InferContext& context);

}  // namespace weft::ops
