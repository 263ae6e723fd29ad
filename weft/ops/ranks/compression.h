// The ops of compression.cpp, for the table of all ops.
#pragma once

#include "weft/graph/op_def.h"

namespace weft::ops {

void add_compression_ops(OpRegistry&);

}  // namespace weft::ops
