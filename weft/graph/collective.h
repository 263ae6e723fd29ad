// The ops by which the ranks of a run exchange tensors, as passes and plans know them. `all_reduce` is complete in
// itself; in its place may stand `all_reduce_start`, after which the results are under way, and `all_reduce_wait`,
// after which they are there. Both carry the number of the collective, so that what one began the other ends. The same
// of `all_gather`, which gives all ranks the parts that each of them has.
#pragma once

#include "weft/graph/graph.h"

namespace weft {

inline constexpr const char* kAllReduce = "all_reduce";
inline constexpr const char* kAllReduceStart = "all_reduce_start";
inline constexpr const char* kAllReduceWait = "all_reduce_wait";
inline constexpr const char* kAllGather = "all_gather";
inline constexpr const char* kAllGatherStart = "all_gather_start";
inline constexpr const char* kAllGatherWait = "all_gather_wait";
inline constexpr const char* kDeferred = "deferred";  // = true, of a wait: it may wait in the next run
inline constexpr const char* kPriority = "priority";  // of a start: an integer, the most urgent 0
inline constexpr int kMostTensorsInCollective = 256;

inline bool is_all_reduce(const Node& node) { return node.op->name == kAllReduce; }
inline bool is_deferred(const Node& node) {
  return node.attributes.has(kDeferred) && node.attributes.boolean(kDeferred);
}
inline bool is_collective_start(const Node& node) {
  return node.op->name == kAllReduceStart || node.op->name == kAllGatherStart;
}
inline bool is_collective_wait(const Node& node) {
  return node.op->name == kAllReduceWait || node.op->name == kAllGatherWait;
}
inline bool is_gather(const Node& node) {
  return node.op->name == kAllGather || node.op->name == kAllGatherStart || node.op->name == kAllGatherWait;
}
/// Of all ranks at once: not to be repeated, left out or moved on one of them alone.
inline bool is_collective(const Node& node) {
  return is_all_reduce(node) || is_collective_start(node) || is_collective_wait(node) || node.op->name == kAllGather;
}

}  // namespace weft
