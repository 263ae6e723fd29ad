#include "weft/simulate/collective_cost.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::simulate {

namespace {

double log2_up(int count) { return std::ceil(std::log2(static_cast<double>(std::max(count, 1)))); }
bool is_power_of_two(int count) { return (count & (count - 1)) == 0; }

/// The links of a group, reduced to what its members see of them.
class GroupLinks {
 public:
  GroupLinks(const GroupShape& group, const machines::ClusterFile& cluster)
      : n(group.size), d(std::min(group.per_host, group.size)), hosts(group.hosts()) {
    a = cluster.in_host.latency_seconds + cluster.in_host.message_seconds;
    A = cluster.between_hosts.latency_seconds + cluster.between_hosts.message_seconds;
    const double at_once = static_cast<double>(d) * group.groups_per_host;
    device_rate = std::min({cluster.in_host.bytes_per_second, cluster.in_host_shared_bytes_per_second / at_once,
                            cluster.summed_bytes_per_second});
    // A member has an adapter of its own, at most.
    const double adapters = std::min<double>(cluster.adapters_per_host, at_once);
    host_rate = cluster.between_hosts.bytes_per_second * adapters / cluster.adapters_per_host;
    if (d == 1) host_rate = std::min(host_rate, cluster.summed_bytes_per_second * group.groups_per_host);
    groups = group.groups_per_host;
    narrow_rate = comm::kUnlimited;
    for (const machines::NetworkLevel& level : cluster.levels) {
      if (hosts <= level.hosts) continue;
      A += level.latency_seconds;
      if (level.uplink_bytes_per_second < narrow_rate) {
        narrow_rate = level.uplink_bytes_per_second;
        units = (hosts + level.hosts - 1) / level.hosts;
      }
    }
  }

  CollectiveCost cost(std::string algorithm, double latency, double of_device, double of_group_on_host,
                      double of_group_on_unit) const {
    CollectiveCost cost{.algorithm = std::move(algorithm), .latency_seconds = latency};
    cost.device_bytes = d > 1 ? of_device : 0;
    cost.device_bytes_per_second = device_rate;
    cost.host_bytes = hosts > 1 ? groups * of_group_on_host : 0;
    cost.host_bytes_per_second = host_rate;
    cost.uplink_bytes = units > 1 ? groups * of_group_on_unit : 0;
    cost.uplink_bytes_per_second = narrow_rate;
    return cost;
  }

  int n, d, hosts, groups = 1, units = 1;
  double a, A, device_rate, host_rate, narrow_rate;
};

double share(int count) { return static_cast<double>(count - 1) / count; }

/// One pass of a ring, of halving-doubling or of a tree, in one direction: a reduce-scatter, or an all-gather.
std::vector<CollectiveCost> one_pass(double bytes, const GroupLinks& g) {
  std::vector<CollectiveCost> all;
  const double of_units = g.units > 1 ? share(g.units) * bytes : 0;
  all.push_back(g.cost("ring", (g.n - g.hosts) * g.a + (g.hosts - 1) * g.A, share(g.n) * bytes,
                       g.hosts > 1 ? share(g.n) * bytes : 0, of_units));
  if (g.hosts > 1) {
    const double within = g.d > 1 ? log2_up(g.d) * g.a : 0;
    all.push_back(g.cost("hierarchical ring", within + (g.hosts - 1) * g.A, share(g.d) * bytes, share(g.hosts) * bytes,
                         of_units));
    // Of other numbers of hosts recursive halving splits unevenly: one more round, the same bytes (Bruck et al. 1997).
    all.push_back(g.cost(g.d > 1 ? "hierarchical halving-doubling" : "halving-doubling",
                         within + log2_up(g.hosts) * g.A, share(g.d) * bytes, share(g.hosts) * bytes, of_units));
  } else {
    all.push_back(g.cost("halving-doubling", log2_up(g.n) * g.a, share(g.n) * bytes, 0, 0));
  }
  return all;
}

void add_twice(std::vector<CollectiveCost>& all, const std::vector<CollectiveCost>& passes) {
  for (CollectiveCost cost : passes) {
    cost.latency_seconds *= 2;
    cost.device_bytes *= 2;
    cost.host_bytes *= 2;
    cost.uplink_bytes *= 2;
    all.push_back(std::move(cost));
  }
}

std::vector<CollectiveCost> all_reduces(double bytes, const GroupLinks& g) {
  std::vector<CollectiveCost> all;
  std::vector<CollectiveCost> passes = one_pass(bytes, g);
  // weft's halving-doubling of another number of members first folds those beyond a power of two.
  const int folded = g.hosts > 1 ? g.hosts : g.n;
  if (!is_power_of_two(folded))
    for (CollectiveCost& cost : passes) {
      if (cost.algorithm.find("halving") == std::string::npos) continue;
      cost.latency_seconds += g.hosts > 1 ? g.A : g.a;
      (g.hosts > 1 ? cost.host_bytes : cost.device_bytes) += g.hosts > 1 ? g.groups * bytes : bytes;
    }
  add_twice(all, passes);
  const double within = g.d > 1 ? log2_up(g.d) * g.a : 0, between = g.hosts > 1 ? log2_up(g.hosts) * g.A : 0;
  // Each member sends all it has in each round.
  all.push_back(g.cost("doubling", within + between, log2_up(g.d) * bytes, g.d * log2_up(g.hosts) * bytes,
                       g.units > 1 ? g.d * g.hosts * bytes / g.units : 0));
  if (g.hosts == 1 || g.d == 1) {
    const double hop = g.hosts > 1 ? g.A : g.a, rate = g.hosts > 1 ? g.host_rate / g.groups : g.device_rate;
    double best_fill = comm::kUnlimited;  // a chunk on its way up and down, and the latency of its hops
    for (int count = 1; count <= 4096; count *= 2) {
      const double chunks = count;
      const double chunk_seconds = bytes / 2 / chunks / rate;
      best_fill = std::min(best_fill, 2 * log2_up(g.n) * (hop + chunk_seconds) + chunks * g.a * 0.1);
    }
    all.push_back(g.cost("double-tree", best_fill, 2 * bytes, 2 * bytes, 2 * bytes));
  } else {
    // A tree over hosts, to which the devices of a host are a chain, as NCCL has it.
    const double chain = 2 * (g.d - 1) * g.a;
    all.push_back(g.cost("hierarchical double-tree", chain + 2 * between, 2 * bytes, 2 * bytes, 2 * bytes));
  }
  return all;
}

}  // namespace

std::string_view name_of(Collective collective) {
  constexpr std::string_view names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"};
  return names[static_cast<size_t>(collective)];
}

GroupShape group_of_all(const machines::ClusterFile& cluster, int ranks) {
  return {.size = ranks, .per_host = std::min(ranks, cluster.devices_per_host), .groups_per_host = 1};
}

double CollectiveCost::seconds() const {
  double bytes_seconds = 0;
  if (device_bytes > 0) bytes_seconds = std::max(bytes_seconds, device_bytes / device_bytes_per_second);
  if (host_bytes > 0) bytes_seconds = std::max(bytes_seconds, host_bytes / host_bytes_per_second);
  if (uplink_bytes > 0) bytes_seconds = std::max(bytes_seconds, uplink_bytes / uplink_bytes_per_second);
  return latency_seconds + bytes_seconds;
}

std::vector<CollectiveCost> costs_of(Collective collective, double bytes, const GroupShape& group,
                                     const machines::ClusterFile& cluster) {
  check(group.size >= 1 && group.per_host >= 1, "a group without members");
  if (group.size == 1) return {{.algorithm = "none"}};
  const GroupLinks g(group, cluster);
  std::vector<CollectiveCost> all;
  switch (collective) {
    case Collective::all_reduce:
      all = all_reduces(bytes, g);
      break;
    case Collective::reduce_scatter:
    case Collective::all_gather:
      all = one_pass(bytes, g);
      break;
    case Collective::broadcast:
      all.push_back(g.cost("tree", log2_up(g.hosts) * g.A + log2_up(g.d) * g.a, bytes, bytes, bytes));
      break;
    case Collective::all_to_all:
      // Each member keeps 1/n of what it has (bytes / n), sends (d-1)/n within its host and the rest to others.
      all.push_back(g.cost("direct", g.hosts > 1 ? g.A : g.a, bytes / g.n * (g.d - 1) / g.n,
                           bytes / g.n * g.d * (g.n - g.d) / g.n, g.units > 1 ? bytes / g.units * share(g.units) : 0));
      break;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const CollectiveCost& one, const CollectiveCost& two) { return one.seconds() < two.seconds(); });
  return all;
}

CollectiveCost cost_of(Collective collective, double bytes, const GroupShape& group,
                       const machines::ClusterFile& cluster) {
  return costs_of(collective, bytes, group, cluster).front();
}

CollectiveCost message_cost(double bytes, bool leaves_host, int sharers, const machines::ClusterFile& cluster) {
  const comm::LinkCosts& link = leaves_host ? cluster.between_hosts : cluster.in_host;
  CollectiveCost cost{.algorithm = "message", .latency_seconds = link.latency_seconds + link.message_seconds};
  if (leaves_host) {
    const int adapters = std::min(sharers, cluster.adapters_per_host);
    cost.host_bytes = bytes * sharers;
    cost.host_bytes_per_second = link.bytes_per_second * adapters / cluster.adapters_per_host;
  } else {
    cost.device_bytes = bytes;
    cost.device_bytes_per_second = link.bytes_per_second;
  }
  return cost;
}

}  // namespace weft::simulate
