// The two ops that carry a value between the host's memory and that of a device which has its own
// (passes/layout/copy_between_spaces.h). Where there is one memory they are not in the graph.
#pragma once

#include <algorithm>

#include "weft/graph/collective.h"
#include "weft/graph/graph.h"
#include "weft/graph/offloaded.h"

namespace weft {

inline constexpr const char* kCopyToDevice = "copy_to_device";
inline constexpr const char* kCopyToHost = "copy_to_host";

inline bool is_copy_to_device(const Node& node) { return node.op->name == kCopyToDevice; }
inline bool is_copy_to_host(const Node& node) { return node.op->name == kCopyToHost; }

/// What ranks exchange and what goes to files is read and written by the host, whatever the device: operands, results
/// and workspace of such a node lie in the host's memory.
inline bool works_on_host(const OpDef& op) {
  const auto is_among = [&](std::span<const CollectiveOps> all) {
    return std::any_of(all.begin(), all.end(), [&](const CollectiveOps& ops) {
      return op.name == ops.whole || op.name == ops.start || op.name == ops.wait;
    });
  };
  return op.name == kStore || op.name == kLoad || is_among(kCollectives) || is_among(kMessages);
}
inline bool works_on_host(const Node& node) { return works_on_host(*node.op); }
/// Where the device has memory of its own: whether what the node makes lies in the host's.
inline bool gives_to_host(const Node& node) { return is_copy_to_host(node) || works_on_host(node); }

}  // namespace weft
