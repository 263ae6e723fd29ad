// Copies a box of elements between two memories in which an element's offset is a sum of one term per axis: what
// transpose, slice, concat, pad, broadcast_to and every change of layout come down to.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::native {

/// Per axis the offset, in elements, of each index along it.
using AxisOffsets = std::vector<std::vector<int64_t>>;

/// The offsets of a tensor in its layout, from index `first[axis]` on, `dims[axis]` of them.
AxisOffsets axis_offsets(const TensorType& type, const std::vector<int64_t>& first, const std::vector<int64_t>& dims);
AxisOffsets axis_offsets(const TensorType& type);

class StridedCopy {
 public:
  /// Both sides need the same number of axes and of indices along each.
  StridedCopy(AxisOffsets from, AxisOffsets to, int64_t element_bytes);
  void run(const void* source, void* target, int threads) const;

 private:
  template <typename Element>
  void run_typed(const Element* source, Element* target, int threads) const;
  template <typename Element>
  void copy_rows(const Element* source, Element* target, int64_t row) const;

  /// Axes by the target's order in memory, so that writes run forward; the last two make the tiles.
  struct Axis {
    std::vector<int64_t> from, to;
    bool from_is_run = false, to_is_run = false;  // each offset one more than the last
    bool from_is_fixed = false;                   // all offsets equal: a broadcast
  };
  std::vector<Axis> outer_;
  Axis rows_, columns_;
  int64_t outer_count_ = 1, element_bytes_ = 4, total_ = 1;
};

}  // namespace weft::native
