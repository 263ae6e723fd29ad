// Hosts behind two switches whose uplinks are slower than the hosts' own links, and pairs of hosts.
#pragma once

#include <utility>
#include <vector>

#include "weft/comm/links/links.h"

namespace weft::comm {

inline constexpr LinkCosts kNear{.latency_seconds = 50e-6, .bytes_per_second = 125e6, .message_seconds = 2e-6};
inline constexpr LinkCosts kFar{.latency_seconds = 80e-6, .bytes_per_second = 25e6, .message_seconds = 2e-6};

/// Hosts in turn: 0, 2, 4... in the first of two groups.
inline Topology two_switches(int hosts, double uplink = 25e6) {
  Topology topology;
  for (int group = 0; group < 2; ++group) {
    topology.groups.push_back({.hosts = {}, .within = kNear, .uplink_bytes_per_second = uplink});
    for (int host = group; host < hosts; host += 2) topology.groups.back().hosts.push_back(host);
  }
  return topology;
}

inline Links links_of_two_switches(int hosts) { return {hosts, kFar, two_switches(hosts)}; }

inline std::vector<std::pair<int, int>> all_pairs(int hosts) {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < hosts; ++a)
    for (int b = a + 1; b < hosts; ++b) pairs.emplace_back(a, b);
  return pairs;
}

}  // namespace weft::comm
