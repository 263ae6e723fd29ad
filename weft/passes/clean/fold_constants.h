// Computes at compile time what depends on constants only, and removes operations that change nothing.
//
// A `constant` is a fill of one number, so folding is arithmetic on single numbers: add(x, constant) becomes
// add_scalar, a chain of multiply_scalar one factor, the reshape of a constant a constant. Only exactly rounded
// operations with finite results are evaluated; nothing is assumed of x: x * 0 stays, it keeps NaN.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph fold_constants(const Graph& graph);

}  // namespace weft::passes
