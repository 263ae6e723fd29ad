// The tensors of a collective as one row of elements. Each tensor begins at a multiple of kUnit, so that shares that
// are split between ranks never meet in a cache line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/base/parallel.h"

namespace weft::comm {

class ElementMap {
 public:
  static constexpr int64_t kUnit = 64;

  explicit ElementMap(const std::vector<int64_t>& elements) : elements_(elements) {
    for (const int64_t count : elements) {
      begins_.push_back(size_);
      size_ += (count + kUnit - 1) / kUnit * kUnit;
    }
  }

  int64_t size() const { return size_; }
  int64_t begin_of(size_t tensor) const { return begins_[tensor]; }

  /// The part of the row that is the share of part `index` of `parts`.
  std::pair<int64_t, int64_t> share(int index, int parts) const {
    const auto [begin, end] = split_range(size_ / kUnit, index, parts);
    return {begin * kUnit, end * kUnit};
  }

  /// Calls body(tensor, first, last, at) for the tensors' elements [first, last) in the row's [begin, end), where
  /// `at` is the place of the first in the row.
  template <typename Body>
  void for_each_piece(int64_t begin, int64_t end, Body&& body) const {
    // The last tensor that begins at or before `begin`; those without elements do not matter.
    auto tensor = static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin());
    for (tensor -= tensor > 0 ? 1 : 0; tensor < begins_.size() && begins_[tensor] < end; ++tensor) {
      const int64_t first = std::max<int64_t>(begin - begins_[tensor], 0);
      const int64_t last = std::min(end - begins_[tensor], elements_[tensor]);
      if (first < last) body(tensor, first, last, begins_[tensor] + first);
    }
  }

 private:
  std::vector<int64_t> elements_, begins_;
  int64_t size_ = 0;
};

}  // namespace weft::comm
