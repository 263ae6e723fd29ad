#include "weft/comm/links/links.h"

#include <algorithm>
#include <iterator>

#include "weft/base/error.h"

namespace weft::comm {

Links::Links(int hosts, const LinkCosts& others, const Topology& topology) : kinds_{others} {
  if (topology.is_empty() || hosts < 2) return;
  size_ = hosts;
  const auto count = static_cast<size_t>(hosts);
  kind_of_.assign(count * count, 0);
  const auto kind_of = [&](const LinkCosts& costs) {
    const auto kind = std::find(kinds_.begin(), kinds_.end(), costs) - kinds_.begin();
    if (kind == std::ssize(kinds_)) kinds_.push_back(costs);
    return static_cast<int32_t>(kind);
  };
  const auto set = [&](int first, int second, int32_t kind) {
    check(first >= 0 && second >= 0 && first < hosts && second < hosts, "a topology of other hosts");
    kind_of_[static_cast<size_t>(first * hosts + second)] = kind_of_[static_cast<size_t>(second * hosts + first)] =
        kind;
  };
  group_of_.assign(count, 0);
  for (const Topology::Group& group : topology.groups) {
    for (const int first : group.hosts) {
      check(first >= 0 && first < hosts, "a topology of other hosts");
      group_of_[static_cast<size_t>(first)] = static_cast<int>(uplinks_.size());
      if (!group.within) continue;
      const int32_t kind = kind_of(*group.within);
      for (const int second : group.hosts)
        if (first != second) set(first, second, kind);
    }
    uplinks_.push_back(group.uplink_bytes_per_second);
  }
  if (uplinks_.empty()) uplinks_.push_back(kUnlimited);
  for (const Topology::Pair& pair : topology.pairs) set(pair.first, pair.second, kind_of(pair.costs));
}

LinkCosts Links::slowest() const {
  LinkCosts slowest = kinds_.front();
  // The first kind may be that of no pair.
  bool has_any = are_equal();
  for (int from = 0; from < size_; ++from)
    for (int to = 0; to < size_; ++to) {
      if (from == to) continue;
      const LinkCosts& link = of(from, to);
      if (!has_any) slowest = link;
      has_any = true;
      slowest.latency_seconds = std::max(slowest.latency_seconds, link.latency_seconds);
      slowest.message_seconds = std::max(slowest.message_seconds, link.message_seconds);
      slowest.bytes_per_second = std::min(slowest.bytes_per_second, link.bytes_per_second);
    }
  if (groups() > 1)
    for (const double uplink : uplinks_) slowest.bytes_per_second = std::min(slowest.bytes_per_second, uplink);
  return slowest;
}

Links Links::divided(int parts) const {
  Links links = *this;
  for (LinkCosts& kind : links.kinds_) kind.bytes_per_second /= parts;
  for (double& uplink : links.uplinks_) uplink /= parts;
  return links;
}

Links Links::delayed(double seconds) const {
  Links links = *this;
  for (LinkCosts& kind : links.kinds_) kind.latency_seconds += seconds;
  return links;
}

Links Links::reordered(const std::vector<int>& order) const {
  Links links = *this;
  if (order.empty() || are_equal()) return links;
  check(order.size() == static_cast<size_t>(size_), "an order of another number of hosts");
  for (int from = 0; from < size_; ++from) {
    const int host = order[static_cast<size_t>(from)];
    links.group_of_[static_cast<size_t>(from)] = group_of(host);
    for (int to = 0; to < size_; ++to)
      links.kind_of_[static_cast<size_t>(from * size_ + to)] =
          kind_of_[static_cast<size_t>(host * size_ + order[static_cast<size_t>(to)])];
  }
  return links;
}

}  // namespace weft::comm
