#include "weft/comm/links/orders.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "weft/base/error.h"

namespace weft::comm {

namespace {

/// Hosts of each group; that of `first` comes first and begins with it.
std::vector<std::vector<int>> hosts_by_group(const Links& links, int hosts, int first) {
  std::vector<std::vector<int>> groups(static_cast<size_t>(std::max(links.groups(), 1)));
  for (int host = 0; host < hosts; ++host) groups[static_cast<size_t>(links.group_of(host))].push_back(host);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  std::sort(groups.begin(), groups.end());
  for (auto& group : groups) {
    const auto found = std::find(group.begin(), group.end(), first);
    if (found == group.end()) continue;
    std::rotate(group.begin(), found, group.end());
    std::iter_swap(&group, groups.begin());
    break;
  }
  return groups;
}

std::vector<int> nearest_first(const Links& links, int hosts, int first) {
  std::vector<int> order{std::max(first, 0)}, left;
  for (int host = 0; host < hosts; ++host)
    if (host != order.front()) left.push_back(host);
  while (!left.empty()) {
    const int here = order.back();
    const auto distance = [&](int host) {
      const LinkCosts& link = links.of(here, host);
      return std::tuple(links.group_of(here) != links.group_of(host), -link.bytes_per_second, link.latency_seconds,
                        host);
    };
    const auto nearest =
        std::min_element(left.begin(), left.end(), [&](int a, int b) { return distance(a) < distance(b); });
    order.push_back(*nearest);
    left.erase(nearest);
  }
  return order;
}

}  // namespace

std::vector<std::vector<int>> orders_of(const Links& links, int hosts, int first) {
  std::vector<std::vector<int>> orders{{}};
  if (links.are_equal()) return orders;
  std::vector<int> own(static_cast<size_t>(hosts));
  std::iota(own.begin(), own.end(), 0);
  const auto add = [&](std::vector<int> order) {
    if (order != own && std::find(orders.begin(), orders.end(), order) == orders.end())
      orders.push_back(std::move(order));
  };
  const std::vector<std::vector<int>> groups = hosts_by_group(links, hosts, first);
  std::vector<int> together, in_turn;
  for (const auto& group : groups) together.insert(together.end(), group.begin(), group.end());
  for (size_t index = 0; in_turn.size() < together.size(); ++index)
    for (const auto& group : groups)
      if (index < group.size()) in_turn.push_back(group[index]);
  add(std::move(together));
  add(nearest_first(links, hosts, first));
  add(std::move(in_turn));
  return orders;
}

bool has_groups_in_turn(const Links& links, int hosts) {
  const int groups = links.groups();
  if (groups < 2 || hosts % groups != 0 || hosts == groups) return false;
  const int size = hosts / groups;
  for (int host = 0; host < hosts; ++host) {
    const bool begins = host % size == 0;
    if (host > 0 && (links.group_of(host) != links.group_of(host - 1)) != begins) return false;
  }
  return true;
}

int place_of(const std::vector<int>& order, int host) {
  if (order.empty()) return host;
  const auto found = std::find(order.begin(), order.end(), host);
  check(found != order.end(), "an order of other hosts");
  return static_cast<int>(found - order.begin());
}

}  // namespace weft::comm
