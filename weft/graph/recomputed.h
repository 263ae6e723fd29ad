// The mark of nodes that compute a second time what another node has computed, to save memory.
#pragma once

#include "weft/graph/graph.h"
#include "weft/graph/marks.h"

namespace weft {

inline bool is_recomputed(const Node& node) { return node.attributes.has(kRecomputed); }

}  // namespace weft
