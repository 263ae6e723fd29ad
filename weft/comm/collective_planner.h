// How collectives go between the hosts: by which algorithm, in parts of which size, and what that is predicted to take.
// All ranks predict alike, so that all of them choose the same.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/comm/collective_layout.h"
#include "weft/comm/collectives.h"
#include "weft/comm/links/choose.h"

namespace weft::comm {

/// How a rank's share of a collective goes to the other hosts.
struct LanePlan {
  Choice choice;
  std::vector<LanePart> parts;      // none where the rank carries nothing
  std::vector<Schedule> schedules;  // of each part
  int64_t lane_elements = 0;        // of f32 in the lane's buffer; 0: all parts are summed in place

  /// Of the lane's buffer and of what the schedules receive before they add it, with messages in `wire`.
  int64_t buffer_bytes(DType wire) const;
};

class CollectivePlanner {
 public:
  /// For the rank of these members, whose hosts are numbered by their first rank. `has_native`: the communicator has an
  /// all-reduce of its own. Nothing is exchanged.
  CollectivePlanner(std::vector<Member> members, int rank, bool has_native, const CollectivesOptions& options);

  /// Ranks of each host, by host and then by local rank.
  const std::vector<std::vector<int>>& hosts() const { return hosts_; }
  bool has_other_hosts() const { return hosts_.size() > 1; }
  /// Ranks of a host that exchange with other hosts: as many as the smallest host has.
  int lanes() const { return lanes_; }
  /// Of a lane, among which the links of a host are divided.
  const Links& links() const { return links_; }

  /// By which all ranks predict alike, as they have to, where hosts have different numbers of them.
  int64_t most_on_host() const;
  int64_t most_bytes_at_once() const;
  /// Elements of a part: of which each host sends the others messages that hold the link for a while that something
  /// more urgent can wait, but long enough beside what a message costs.
  int64_t most_elements(DType dtype) const;
  int64_t parts_of(DType dtype, int64_t share) const;
  /// Of a lane's share, with the link of a host divided among its lanes.
  Choice choose(DType dtype, int64_t elements) const;
  /// The lanes choose alike, by the first one's, which has the largest shares.
  Choice choose_gather(DType dtype, const GatherMap& map) const;
  GatherMap gather_of(DType dtype, int64_t elements) const;
  double predicted_in_host(int64_t bytes) const;
  /// Of what moves `bytes` on the way there and back, as an all-reduce reads and writes its operands.
  double predicted_in_host(const CollectiveSpec& spec, int64_t bytes) const;
  CollectiveLayout layout_of(const CollectiveSpec& spec) const { return {spec, members_, rank_, lanes_}; }
  /// The choice is that for the largest share, so that all lanes choose alike.
  LanePlan plan(const CollectiveLayout& layout) const;
  /// Of memory that a collective takes on this rank for its messages, from its preparation on; 0 on one host.
  int64_t buffer_bytes(const CollectiveSpec& spec) const;

 private:
  int host_count() const { return static_cast<int>(hosts_.size()); }
  int host_index() const { return members_[static_cast<size_t>(rank_)].host_index; }
  Choice choose(const CollectiveLayout& layout) const;
  Schedule make_schedule_of(const CollectiveLayout& layout, const LanePart& part, const Choice& choice) const;
  int root_host(const CollectiveSpec& spec) const;
  /// Of one tensor, whose parts are of equal sizes, not all but one of the largest; as for several small ones, which
  /// fill their parts as far as they do.
  int64_t elements_of_part(DType dtype, int64_t share) const;
  /// Where the communicator's own all-reduce is of the same ranks, and holds nothing up that is more urgent.
  bool may_be_native(DType dtype) const;
  /// What it takes of the time that ours takes.
  double native_share(DType dtype, int64_t elements) const;

  const std::vector<Member> members_;
  const int rank_;
  const bool has_native_;
  const CollectivesOptions options_;
  const std::vector<std::vector<int>> hosts_;
  const int lanes_;
  const Links links_;
  const LinkCosts slowest_;  // of these
};

}  // namespace weft::comm
