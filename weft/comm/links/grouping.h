// From measured links to what is said of them: which hosts stand together, and which links are alike. What is measured
// varies from run to run; here that must not make a difference where there is none.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "weft/comm/links/links.h"

namespace weft::comm {

/// Bandwidths within this factor of each other count as the same.
constexpr double kAlikeFactor = 1.7;

/// A link per pair of hosts, the same in both directions.
class PairTable {
 public:
  explicit PairTable(int hosts) : hosts_(hosts), links_(static_cast<size_t>(hosts * hosts), LinkCosts{0, 0, 0}) {}
  int hosts() const { return hosts_; }
  const LinkCosts& at(int a, int b) const { return links_[static_cast<size_t>(a * hosts_ + b)]; }
  void set(int a, int b, const LinkCosts& link) {
    links_[static_cast<size_t>(a * hosts_ + b)] = links_[static_cast<size_t>(b * hosts_ + a)] = link;
  }

 private:
  int hosts_;
  std::vector<LinkCosts> links_;
};

/// Whether both are within the factor in bandwidth, and neither has several times the other's latency.
bool are_alike(const LinkCosts& a, const LinkCosts& b);

/// Rounds in which each host meets each other one once, and none two at a time.
std::vector<std::vector<std::pair<int, int>>> tournament(int hosts);

/// Hosts that stand together, each group ascending, in the order of their first hosts. A link is a far one if it is
/// worse than what both of its ends have elsewhere, so that neither of them can be the reason. Two hosts are as distant
/// as the share of hosts, each other among them, that are far from one of the two only; those stand together whose mean
/// distance is below a half (average linkage). Equal links give one group.
std::vector<std::vector<int>> find_groups(const PairTable& measured);

/// What pairs of hosts have in common.
struct AlikeLinks {
  LinkCosts costs;                         // of those in the middle
  std::vector<Topology::Pair> exceptions;  // the others, those that are alike with the same costs
};
/// The costs in the middle are those of the host that has the worst: of each host the median, so that a single link
/// that was disturbed counts for little. A link is an exception only where an end of it has at least as many others,
/// and two at least: it is hosts that are slow, seldom a link between two. `pairs` are not empty.
AlikeLinks summarize(const PairTable& measured, const std::vector<std::pair<int, int>>& pairs);

}  // namespace weft::comm
