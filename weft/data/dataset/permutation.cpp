// A Feistel network over rows x columns >= size, cells past the end walked over:
// Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
#include "weft/data/dataset/permutation.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/rng.h"

namespace weft::data {

namespace {
constexpr uint64_t kRounds = 8;
}

Permutation::Permutation(int64_t size, uint64_t key) : size_(static_cast<uint64_t>(size)), key_(key) {
  check(size >= 1, "a permutation of at least one item");
  rows_ = static_cast<uint64_t>(std::sqrt(static_cast<double>(size_)));
  while (rows_ * rows_ < size_) ++rows_;
  columns_ = (size_ + rows_ - 1) / rows_;
}

int64_t Permutation::operator[](int64_t position) const {
  auto cell = static_cast<uint64_t>(position);
  do {
    uint64_t row = cell / columns_, column = cell % columns_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      // Each step can be undone (the other half is kept), so the whole maps cells one to one.
      if (round % 2 == 0)
        row = (row + mix(key_ + round, column) % rows_) % rows_;
      else
        column = (column + mix(key_ + round, row) % columns_) % columns_;
    }
    cell = row * columns_ + column;
  } while (cell >= size_);
  return static_cast<int64_t>(cell);
}

}  // namespace weft::data
