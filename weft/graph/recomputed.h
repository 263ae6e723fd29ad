// The attribute of nodes that compute a second time what another node has computed, to save memory.
#pragma once

#include "weft/graph/graph.h"

namespace weft {

inline constexpr const char* kRecomputed = "recomputed";  // = true

inline bool is_recomputed(const Node& node) { return node.attributes.has(kRecomputed); }

}  // namespace weft
