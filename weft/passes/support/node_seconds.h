// A rough prediction of how long a node runs: the larger of its arithmetic and its memory traffic. Good enough to weigh
// nodes of one graph against each other, which is all that recomputation asks.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

double node_seconds(const NodeSignature& node, int threads);

}  // namespace weft::passes
