// Groups elementwise operations of one shape into fused_elementwise nodes, so that memory is read and written once.
//
// A group grows from its last node towards the operands. An intermediate joins it where all its users are inside; or
// as an additional result where its other users come later and it stands close by; so does the neighbour of a member
// that reads the same operands. A group has at most 8 operands and
// 24 instructions, and none that would keep more memory alive over a long stretch. Sums of integers (i32) that a cast
// makes f32 for the group alone are read as they are.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph fuse_elementwise(const Graph& graph);

}  // namespace weft::passes
