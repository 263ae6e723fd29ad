// Where the elements of one collective lie, on one rank: which of them its lane carries, in which parts they travel,
// and what of them needs memory beside the tensors. Plain arithmetic on the members: nothing is exchanged or allocated,
// so that plans can ask before a run.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"
#include "weft/comm/element_map.h"
#include "weft/comm/gather_map.h"

namespace weft::comm {

/// A part of a lane's share, which travels by itself.
struct LanePart {
  int64_t begin = 0, end = 0;  // of the row
  /// Where the rank is alone on its host and the part lies in one tensor that has f32, or 4 bytes that are only moved:
  /// that tensor, in which the part is summed in place, and where in it the part begins. Else -1.
  int32_t tensor = -1;
  int64_t first = 0;
};

class CollectiveLayout {
 public:
  /// `rank`: one of the members. `lanes`: ranks of each host that have a share.
  CollectiveLayout(CollectiveSpec spec, const std::vector<Member>& members, int rank, int lanes);

  const CollectiveSpec& spec() const { return spec_; }
  /// Per tensor, whole.
  const std::vector<int64_t>& elements() const { return elements_; }
  const ElementMap& map() const { return map_; }
  int lanes() const { return lanes_; }
  int host_index() const { return host_index_; }
  int local_rank() const { return local_rank_; }
  int ranks_here() const { return ranks_here_; }
  bool is_alone() const { return ranks_here_ == 1; }
  /// The part of the row that this rank sums, or an empty one.
  std::pair<int64_t, int64_t> share() const { return share_; }
  /// Where tensors have parts, else null. The share is of the row of this host's parts.
  const GatherMap* gather() const { return gather_.get(); }
  /// With other hosts: where in the lane's buffer its share of each host's parts begins; one more for the end.
  const std::vector<int64_t>& lane_begins() const { return lane_begins_; }
  /// Local rank of the root where it is on this host, else -1.
  int root_local() const { return root_local_; }

  /// The parts of the share that have at most about `most_elements`: the same on the other hosts, whatever ranks they
  /// have. One where tensors have parts of ranks.
  std::vector<LanePart> split_share(int64_t most_elements) const;
  /// In which the elements travel between hosts: what is only moved travels as it is.
  DType wire() const;

 private:
  bool can_stay_in_place() const;
  std::vector<LanePart> parts_of(int64_t most_elements) const;

  const CollectiveSpec spec_;
  const std::vector<int64_t> elements_;
  const ElementMap map_;
  const std::shared_ptr<const GatherMap> gather_;
  const int ranks_, lanes_, host_index_, local_rank_;
  int ranks_here_ = 0, root_local_ = -1;
  const std::vector<int64_t> lane_begins_;
  const std::pair<int64_t, int64_t> share_;
};

}  // namespace weft::comm
