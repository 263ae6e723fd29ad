// What a collective costs on a cluster of thousands of ranks. Members that do the same are counted once: an algorithm
// is a chain of latencies and bytes through each kind of link, as the schedules of comm/schedules have them, which
// tests compare with the simulation of every message (comm/cost.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/machines/cluster_file.h"

namespace weft::simulate {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all };
std::string_view name_of(Collective collective);

/// Ranks that exchange, as they lie on the cluster.
struct GroupShape {
  int size = 1;
  int per_host = 1;         // members on each host, so that size / per_host hosts take part
  int groups_per_host = 1;  // that do the same at the same time on each host, and share its links
  int hosts() const { return (size + per_host - 1) / per_host; }
};
/// All of the first `ranks` ranks of the cluster.
GroupShape group_of_all(const machines::ClusterFile& cluster, int ranks);

struct CollectiveCost {
  std::string algorithm = {};
  double latency_seconds = 0;  // of the chain of messages, without their bytes
  double device_bytes = 0;     // that each member sends within its host
  double host_bytes = 0;       // that each host sends, all groups on it together
  double uplink_bytes = 0;     // that each unit of the narrowest level sends
  double device_bytes_per_second = 0, host_bytes_per_second = 0, uplink_bytes_per_second = 0;  // of what carries them
  /// Alone on the network.
  double seconds() const;
};

/// The cheapest algorithm for `bytes` (of the whole tensor: what every member has in the end, or had in the beginning).
/// Of an all-reduce: ring, halving-doubling, doubling, double-tree, each over all or between hosts with a
/// reduce-scatter and an all-gather within them. With H hosts of d members, V bytes: ring 2(n-H) a + 2(H-1) A, 2(n-1)/n
/// V; hierarchical halving-doubling 2 log2(d) a + 2 log2(H) A and 2(H-1)/H V through a host's link, and so on
/// (schedules/schedules.h).
CollectiveCost cost_of(Collective collective, double bytes, const GroupShape& group,
                       const machines::ClusterFile& cluster);
/// All that were compared, the cheapest first.
std::vector<CollectiveCost> costs_of(Collective collective, double bytes, const GroupShape& group,
                                     const machines::ClusterFile& cluster);

/// Of a message from a device to one on another host, or of its own; through one adapter that `sharers` use at a time.
CollectiveCost message_cost(double bytes, bool leaves_host, int sharers, const machines::ClusterFile& cluster);

}  // namespace weft::simulate
