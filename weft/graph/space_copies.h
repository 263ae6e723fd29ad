// The two ops that carry a value between the host's memory and that of a device which has its own
// (passes/layout/copy_between_spaces.h). Where there is one memory they are not in the graph.
#pragma once

#include "weft/graph/graph.h"

namespace weft {

inline constexpr const char* kCopyToDevice = "copy_to_device";
inline constexpr const char* kCopyToHost = "copy_to_host";

inline bool is_copy_to_device(const Node& node) { return node.op->name == kCopyToDevice; }
inline bool is_copy_to_host(const Node& node) { return node.op->name == kCopyToHost; }

}  // namespace weft
