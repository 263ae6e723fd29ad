// The elements that an all-gather or a reduce-scatter moves: of each host what its ranks give, or get, as one row that
// the lanes share among themselves, and in a lane's buffer its shares of all hosts one behind the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/element_map.h"
#include "weft/tensor/dtype.h"

namespace weft::comm {

/// Tensors of ranks x elements each, of which every rank has its own part at first, or in the end.
class GatherMap {
 public:
  /// `elements`: of one rank's part, per tensor.
  GatherMap(std::vector<int64_t> elements, const std::vector<Member>& members, DType dtype);

  int hosts() const { return static_cast<int>(ranks_.size()); }
  /// All parts of the host's ranks.
  int64_t elements_of(int host) const { return rows_[static_cast<size_t>(host)].size(); }
  std::pair<int64_t, int64_t> share(int host, int lane, int lanes) const {
    return rows_[static_cast<size_t>(host)].share(lane, lanes);
  }
  /// Where in the lane's buffer its share of each host begins; one more for the end.
  std::vector<int64_t> begins_in_lane(int lane, int lanes) const;

  /// `tensors`: tensor by tensor, of all ranks of this host. Writes [begin, end) of the host's row, which some of them
  /// have, to all others.
  void spread(int host, int64_t begin, int64_t end, std::span<void* const> tensors) const;
  /// From the tensors to the lane's buffer, f32 or as many bytes, and back, to all ranks of the host where they are.
  void pack(int host, int64_t begin, int64_t end, std::span<void* const> tensors, float* lane) const;
  void unpack(int from_host, int64_t begin, int64_t end, const float* lane, std::span<void* const> tensors,
              size_t ranks_here) const;

  /// Of a reduce-scatter. `tensors` as above. The sums over the ranks of this host of [begin, end) of a host's row: to
  /// the lane's buffer, or, of this host's own row, times the factor, to the rank whose part it is.
  void sum(int host, int64_t begin, int64_t end, std::span<const void* const> tensors, size_t ranks_here,
           float* lane) const;
  void sum_to_owners(int host, int64_t begin, int64_t end, std::span<const void* const> sources,
                     std::span<void* const> tensors, float factor) const;
  /// From the lane's buffer to those ranks.
  void give_to_owners(int host, int64_t begin, int64_t end, const float* lane, std::span<void* const> tensors,
                      float factor) const;

 private:
  struct Part {
    int rank;      // whose it is
    size_t local;  // among the ranks of its host
    size_t tensor;
  };
  std::byte* at(void* tensor, const Part& part, int64_t first) const;
  /// Where in its tensor an element of the part is.
  int64_t place_of(const Part& part, int64_t first) const { return part.rank * elements_[part.tensor] + first; }
  const Part& part(int host, size_t piece) const { return parts_[static_cast<size_t>(host)][piece]; }

  const std::vector<int64_t> elements_;
  const DType dtype_;
  std::vector<std::vector<int>> ranks_;   // per host
  std::vector<std::vector<Part>> parts_;  // per host: of its row, in order
  std::vector<ElementMap> rows_;
};

}  // namespace weft::comm
