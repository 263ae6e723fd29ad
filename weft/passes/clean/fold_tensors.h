// Computes at compile time what constant tensors alone decide: nodes whose operands all are constants, of which one at
// least is a tensor, become constant tensors; a view shares its operand's memory.
//
// A result is folded where it takes no more than its operands or than 64 KiB, so that the broadcast of a scalar never
// becomes memory. The device computes it (Backend::evaluate), so that the bits are those of the step.
#pragma once

#include "weft/device/backend.h"
#include "weft/graph/graph.h"

namespace weft::passes {

Graph fold_tensors(const Graph& graph, const Backend& backend);

}  // namespace weft::passes
