// What a collective will cost, before it runs: schedules are simulated over links of known latency and bandwidth.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/comm/links/links.h"
#include "weft/comm/schedules/schedules.h"

namespace weft::comm {

/// Seconds of an all-reduce of f32 over all ranks, each a host of its own, of 1 KB, 4 KB, 16 KB...: of the one that the
/// communicator does itself, and of the cheapest of ours, measured in turn; 0 where they were not.
struct NativeCosts {
  static constexpr int64_t kSmallestBytes = 1024, kStep = 4;
  std::array<double, 6> seconds{}, own_seconds{};
  /// What the communicator's takes of the time that ours takes; in between of that of the sizes around. Infinite for
  /// what is larger than all that was measured.
  double share_of(int64_t bytes) const;
  friend bool operator==(const NativeCosts&, const NativeCosts&) = default;
};

struct ClusterCosts {
  LinkCosts between_hosts;                // of any two hosts, in each direction, unless the topology says otherwise
  LinkCosts in_host{1e-6, 10e9, 0.3e-6};  // through shared memory
  double summed_bytes_per_second = 8e9;   // of operands that one thread adds to others in f32
  double shared_bytes_per_second = 10e9;  // all-reduced in shared memory: bytes of one rank's operands
  NativeCosts native;
  Topology topology = {};
  friend bool operator==(const ClusterCosts&, const ClusterCosts&) = default;
};

/// Seconds until the last member has its result. `schedules`: one per member, which all start at once. A member sends
/// one message at a time and receives one at a time (both at once), over the link of the two; what leaves a group or
/// enters it passes its uplink one after the other, in each direction. An element takes `element_bytes` on the way.
double simulate(const std::vector<Schedule>& schedules, const Links& links, double summed_elements_per_second,
                int64_t element_bytes);

/// Seconds for which the busiest member sends, or receives, or the busiest uplink carries in one direction.
double busiest_seconds(const std::vector<Schedule>& schedules, const Links& links, int64_t element_bytes);

}  // namespace weft::comm
