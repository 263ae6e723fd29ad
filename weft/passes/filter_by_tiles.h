// Marks the convolutions of 3x3 in f32 and bf16 that may multiply in Winograd's transformed tiles: a kernel may then
// take 16 multiplications for four results in place of 36, or 36 for sixteen in place of 144. Sums are rounded
// otherwise, and transformed numbers once more where they are bf16 (docs/precision.md has the errors). Whether a kernel
// does is the backend's choice, by shape. The attribute is the workspace that it may take: an eighth of what all
// convolutions of the graph put out, so that the memory of a step grows by little, or 16 MB.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph filter_by_tiles(const Graph& graph);

}  // namespace weft::passes
