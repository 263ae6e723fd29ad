// What repeats itself in a row: the equal blocks of a model, found from what its graph does and not from names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::search {

/// `count` equal pieces of `length` tokens each, one behind the other.
struct Repeat {
  size_t begin = 0, length = 1, count = 1;
  friend bool operator==(const Repeat&, const Repeat&) = default;
};

/// Cuts the row into repeats, in order, which cover it: first the repeat that covers the most, of equal ones that of
/// the shortest piece, then likewise what is left on both sides of it. What does not repeat stands alone, token by
/// token. Takes time in proportion to the square of the row's length.
std::vector<Repeat> find_repeats(const std::vector<uint64_t>& row);

}  // namespace weft::search
