// Marks the convolutions of 3x3 in bf16 that may multiply in Winograd's transformed tiles: a kernel may then take 16
// multiplications for four results in place of 36, and rounds the transformed numbers to bf16 once more
// (docs/precision.md has the errors). Whether one does is the backend's choice, by shape.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph filter_by_tiles(const Graph& graph);

}  // namespace weft::passes
