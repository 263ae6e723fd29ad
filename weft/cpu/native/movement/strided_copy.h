// A copy between two strided views, of elements of any size: what slice, concat, pad, broadcast and most transposes
// are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/isa.h"
#include "weft/tensor/shape.h"

namespace weft::native {

/// One dimension of a copy; strides in elements. `from` 0: the source repeats.
struct CopyDimension {
  int64_t size = 1, from = 0, to = 0;
};

/// The same walk in as few dimensions as possible, outermost first: those of 1 dropped, neighbours that step through
/// both sides without a gap merged. Empty: one element.
std::vector<CopyDimension> collapse(const std::vector<CopyDimension>& dimensions);

/// Dimensions of a row-major walk over `shape` with these strides on both sides, one per axis.
std::vector<CopyDimension> copy_dimensions(const Shape& shape, const std::vector<int64_t>& from,
                                           const std::vector<int64_t>& to);

/// The two innermost dimensions of a copy, or part of them; strides in bytes.
struct CopyRows {
  std::byte* to;
  const std::byte* from;
  int64_t rows, to_row, from_row;     // how many, and how far apart
  int64_t count, to_step, from_step;  // elements of a row
};

class StridedCopy {
 public:
  /// Elements of 1, 2, 4 or 8 bytes; the walk begins `from_base` and `to_base` elements into the buffers.
  StridedCopy(const std::vector<CopyDimension>& dimensions, int64_t element_size, int64_t from_base, int64_t to_base,
              Isa isa);

  int64_t elements() const { return elements_; }
  /// Copies elements [begin, end) of the walk, row by row: contiguous rows are one memcpy.
  void run(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const;

 private:
  std::vector<CopyDimension> dimensions_;  // collapsed, strides in bytes; at least two
  int64_t elements_ = 1;
  int64_t from_base_, to_base_;  // bytes
  void (*copy_rows_)(const CopyRows&);
};

}  // namespace weft::native
