// Layer normalisation's part of the norm family.
#pragma once

#include "weft/graph/op_def.h"

namespace weft::ops {

void add_layer_norm_ops(OpRegistry&);

}  // namespace weft::ops
