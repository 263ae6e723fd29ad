// The two ops between which a value lies in a file: `store` writes it there, `load` reads it back. What stands between
// them has the value's type but no memory, and only a load may read it.
#pragma once

#include "weft/graph/graph.h"

namespace weft {

inline constexpr const char* kStore = "store";
inline constexpr const char* kLoad = "load";
inline constexpr int64_t kFileBlockBytes = 4096;  // what lies in the file begins at multiples of this

inline bool is_store(const Node& node) { return node.op->name == kStore; }
inline bool is_load(const Node& node) { return node.op->name == kLoad; }

}  // namespace weft
