// A random order of n items, computed item by item: no table to build or to keep, and any epoch's order can be
// entered anywhere.
#pragma once

#include <cstdint>

namespace weft::data {

class Permutation {
 public:
  /// `size` >= 1; the key decides the order.
  Permutation(int64_t size, uint64_t key);
  /// The item at a position, both in [0, size).
  int64_t operator[](int64_t position) const;

 private:
  uint64_t size_, rows_, columns_, key_;
};

}  // namespace weft::data
