// The ops by which the ranks of a run exchange tensors, as passes and plans know them. `all_reduce` is complete in
// itself; in its place may stand `all_reduce_start`, after which the results are under way, and `all_reduce_wait`,
// after which they are there. Both carry the number of the collective, so that what one began the other ends. The same
// of `all_gather`, which gives all ranks the parts that each of them has, of `reduce_scatter`, which gives each its
// part of the sum, and of `broadcast` and `reduce_to_root`, which give all what one has and one the sum of all.
// `all_to_all`, in which each rank has something for each, is always complete in itself. `send` and `receive` are
// messages between two ranks, whose graphs may differ.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "weft/graph/graph.h"

namespace weft {

inline constexpr const char* kAllReduce = "all_reduce";
inline constexpr const char* kAllReduceStart = "all_reduce_start";
inline constexpr const char* kAllReduceWait = "all_reduce_wait";
inline constexpr const char* kAllGather = "all_gather";
inline constexpr const char* kAllGatherStart = "all_gather_start";
inline constexpr const char* kAllGatherWait = "all_gather_wait";
inline constexpr const char* kReduceScatter = "reduce_scatter";
inline constexpr const char* kReduceScatterStart = "reduce_scatter_start";
inline constexpr const char* kReduceScatterWait = "reduce_scatter_wait";
inline constexpr const char* kAllToAll = "all_to_all";
inline constexpr const char* kOwnPart = "own_part";      // of what every rank has: nothing travels
inline constexpr const char* kAxisPlace = "axis_place";  // likewise
inline constexpr const char* kAxis = "axis";             // of an exchange: of the mesh, along which it is
inline constexpr const char* kDataAxis = "data";
inline constexpr const char* kTensorAxis = "tensor";
inline constexpr const char* kPipelineAxis = "pipeline";  // its ranks exchange messages alone
inline constexpr const char* kBroadcast = "broadcast";
inline constexpr const char* kBroadcastStart = "broadcast_start";
inline constexpr const char* kBroadcastWait = "broadcast_wait";
inline constexpr const char* kReduceToRoot = "reduce_to_root";
inline constexpr const char* kReduceToRootStart = "reduce_to_root_start";
inline constexpr const char* kReduceToRootWait = "reduce_to_root_wait";
inline constexpr const char* kSend = "send";
inline constexpr const char* kSendStart = "send_start";
inline constexpr const char* kSendWait = "send_wait";
inline constexpr const char* kReceive = "receive";
inline constexpr const char* kReceiveStart = "receive_start";
inline constexpr const char* kReceiveWait = "receive_wait";
inline constexpr const char* kDeferred = "deferred";  // = true, of a wait: it may wait in the next run
inline constexpr const char* kPriority = "priority";  // of a start: an integer, the most urgent 0
inline constexpr int kMostTensorsInCollective = 256;

/// The ops of one kind of exchange. Empty names: it has no halves.
struct CollectiveOps {
  const char *whole, *start, *wait;
  bool has_halves() const { return *start != '\0'; }
};
inline constexpr CollectiveOps kCollectives[] = {
    {kAllReduce, kAllReduceStart, kAllReduceWait},
    {kAllGather, kAllGatherStart, kAllGatherWait},
    {kReduceScatter, kReduceScatterStart, kReduceScatterWait},
    {kBroadcast, kBroadcastStart, kBroadcastWait},
    {kReduceToRoot, kReduceToRootStart, kReduceToRootWait},
    {kAllToAll, "", ""},
};
inline constexpr CollectiveOps kMessages[] = {{kSend, kSendStart, kSendWait}, {kReceive, kReceiveStart, kReceiveWait}};
/// Those of the node among the given; null where it is none of them.
inline const CollectiveOps* find_ops(const Node& node, std::span<const CollectiveOps> among) {
  for (const CollectiveOps& ops : among)
    if (node.op->name == ops.whole || node.op->name == ops.start || node.op->name == ops.wait) return &ops;
  return nullptr;
}
inline const CollectiveOps* find_collective(const Node& node) { return find_ops(node, kCollectives); }
/// Each has its counterpart on another rank, which waits for it.
inline bool is_message(const Node& node) { return find_ops(node, kMessages) != nullptr; }

/// Of an exchange, or of what gives a rank its part. Other ops have axes of other kinds.
inline std::string axis_of_exchange(const Node& node) {
  const auto axis = node.attributes.values().find(kAxis);
  const bool is_name = axis != node.attributes.values().end() && std::holds_alternative<std::string>(axis->second);
  return is_name ? std::get<std::string>(axis->second) : kDataAxis;
}

/// Over the ranks that divide the batch.
inline bool is_all_reduce(const Node& node) {
  return node.op->name == kAllReduce && axis_of_exchange(node) == kDataAxis;
}
inline bool is_deferred(const Node& node) {
  return node.attributes.has(kDeferred) && node.attributes.boolean(kDeferred);
}
/// Halves of messages too.
inline bool is_collective_start(const Node& node) {
  const CollectiveOps* const ops = is_message(node) ? find_ops(node, kMessages) : find_collective(node);
  return ops != nullptr && node.op->name == ops->start;
}
inline bool is_collective_wait(const Node& node) {
  const CollectiveOps* const ops = is_message(node) ? find_ops(node, kMessages) : find_collective(node);
  return ops != nullptr && node.op->name == ops->wait;
}
inline bool is_gather(const Node& node) {
  return node.op->name == kAllGather || node.op->name == kAllGatherStart || node.op->name == kAllGatherWait;
}
/// Of several ranks: not to be repeated, left out or moved on one of them alone.
inline bool is_collective(const Node& node) { return find_collective(node) != nullptr || is_message(node); }

}  // namespace weft
