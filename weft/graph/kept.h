// Copies of states that outlive a step. The result of a node with the mark `kept` stays in memory from one run of
// a plan to the next: it is computed in the first run after the states were bound, and where the step replaces the
// state that it shows, a `renew` node writes it anew from the successor.
#pragma once

#include "weft/graph/graph.h"
#include "weft/graph/marks.h"

namespace weft {

inline constexpr const char* kRenew = "renew";

inline bool is_kept(const Node& node) { return node.attributes.has(kKept) && node.attributes.boolean(kKept); }
inline bool is_renewal(const Node& node) { return node.op->name == kRenew; }

}  // namespace weft
