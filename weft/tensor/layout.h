// The physical layout of a tensor: an order of the dimensions, then blocks of some of them innermost.
// Spelled as oneDNN spells its tags: a letter per logical dimension, upper case where the dimension is also
// blocked: "abcd" is NCHW, "acdb" NHWC, "aBcd16b" NCHW with channels in blocks of 16, "ABcd16b16a" a
// convolution weight. Blocked dimensions are padded up to a multiple of their blocks; the padding holds zeros.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor/shape.h"

namespace weft {

struct Layout {
  struct Block {
    int axis = 0;
    int size = 1;
    friend bool operator==(const Block&, const Block&) = default;
  };
  std::vector<int> order;     // outer dimensions, outermost first; empty: row-major
  std::vector<Block> blocks;  // inner blocks, outermost first

  /// True for the plain row-major layout.
  bool is_plain() const { return order.empty() && blocks.empty(); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// "aBcd16b"; "" for the plain layout.
std::string to_string(const Layout& layout);
/// Reverses to_string for a tensor of the given rank; Error(data) where the tag makes no sense or its blocks have more
/// than 65536 elements.
Layout parse_layout(std::string_view tag, int rank);
/// Channels innermost: "acdb" for rank 4.
Layout channels_last(int rank);
/// Drops the order where it is row-major, so that equal layouts compare equal.
Layout canonical(Layout layout);

/// Product of the blocks along an axis; 1 where it is not blocked.
int64_t block_of(const Layout& layout, int axis);
/// Whole blocks that hold the elements of an axis.
int64_t blocks_along(const Shape& shape, const Layout& layout, int axis);
/// Elements in memory, padding included.
int64_t storage_elements(const Shape& shape, const Layout& layout);
/// What each index along an axis adds to the position in memory, in elements: positions are sums over the axes.
std::vector<std::vector<int64_t>> axis_offsets(const Shape& shape, const Layout& layout);
/// Position in memory, in elements, of a logical index (one per axis). For tests and rare paths.
int64_t storage_offset(const Shape& shape, const Layout& layout, const std::vector<int64_t>& index);

}  // namespace weft
