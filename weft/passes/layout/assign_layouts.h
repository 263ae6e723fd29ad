// Decides the physical layout of every value: kernels say what they want, everything between follows its operands, and
// a visible `reorder` stands where two disagree, once per value and layout.
//
// A parameter simply has the layout that its first reader wants; its gradient, its optimiser slots and its successor
// follow. Where a cast is all that reads a parameter, the parameter follows its gradient, and the cast's result has the
// layout that its own first reader wants. Batch inputs, scalars and graph outputs stay plain.
#pragma once

#include "weft/device/backend.h"
#include "weft/graph/graph.h"

namespace weft::passes {

Graph assign_layouts(const Graph& graph, const Backend& backend);

}  // namespace weft::passes
