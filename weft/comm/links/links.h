// What a message costs between any two hosts, and which hosts stand behind a link that they share.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace weft::comm {

/// Of a message between two ranks. The link is busy for bytes / bytes_per_second, at least message_seconds; the message
/// is there latency_seconds later. Ethernet with TCP; `weft cluster probe` measures.
struct LinkCosts {
  double latency_seconds = 30e-6;
  double bytes_per_second = 1.2e9;
  double message_seconds = 3e-6;
  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Where hosts differ in their links. Empty: in nothing.
struct Topology {
  /// Hosts behind a switch, or in a rack, that is tied to the others by less than they could send.
  struct Group {
    std::vector<int> hosts;                // ascending
    std::optional<LinkCosts> within = {};  // of links between two of them; those of all hosts where it is not given
    double uplink_bytes_per_second = kUnlimited;  // of all that leaves the group together, and of all that comes in
    friend bool operator==(const Group&, const Group&) = default;
  };
  /// Of two hosts whose link, in both directions, is neither that of their group nor that of all.
  struct Pair {
    int first = 0, second = 0;
    LinkCosts costs = {};
    friend bool operator==(const Pair&, const Pair&) = default;
  };
  std::vector<Group> groups;  // all hosts are in one of them, or there are none
  std::vector<Pair> pairs;
  /// By number, as files name them; may be empty where the numbers are those of the group of ranks at hand.
  std::vector<std::string> hosts;

  bool is_empty() const { return groups.empty() && pairs.empty(); }
  friend bool operator==(const Topology&, const Topology&) = default;
};

/// The costs of the links of some hosts, or of the members of a schedule, looked up by their numbers.
class Links {
 public:
  /// The same between any two of any number of hosts.
  Links(const LinkCosts& all) : kinds_{all} {}  // NOLINT(google-explicit-constructor): one is the plain case of many
  /// `others`: between hosts of which the topology says nothing.
  Links(int hosts, const LinkCosts& others, const Topology& topology);

  bool are_equal() const { return kind_of_.empty(); }
  const LinkCosts& of(int from, int to) const {
    return kinds_[kind_of_.empty() ? 0 : static_cast<size_t>(kind_of_[static_cast<size_t>(from * size_ + to)])];
  }
  /// Whose links are not equal.
  int groups() const { return static_cast<int>(uplinks_.size()); }
  int group_of(int host) const { return group_of_.empty() ? 0 : group_of_[static_cast<size_t>(host)]; }
  double uplink(int group) const { return uplinks_[static_cast<size_t>(group)]; }
  /// Of any two hosts, and with the uplink's rate where that is less.
  LinkCosts slowest() const;

  /// The same links with a part of their rates.
  Links divided(int parts) const;
  /// The same links with so much more latency.
  Links delayed(double seconds) const;
  /// Of members that stand in another order: member m is host order[m]. An empty order is theirs.
  Links reordered(const std::vector<int>& order) const;

 private:
  int size_ = 0;  // 0 where links are equal
  std::vector<LinkCosts> kinds_;
  std::vector<int32_t> kind_of_;  // by from and to
  std::vector<int> group_of_;
  std::vector<double> uplinks_;  // per group
};

}  // namespace weft::comm
