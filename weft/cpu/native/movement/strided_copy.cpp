#include "weft/cpu/native/movement/strided_copy.h"

#include <array>

#include "weft/base/error.h"

namespace weft::native {

namespace {

// Indexed by the binary logarithm of the element size.
struct Loops {
  void (*contiguous[4])(const CopyRows&);
  void (*repeat[4])(const CopyRows&);
  void (*strided[4])(const CopyRows&);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/movement/strided_copy_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr size_t kMaximumRank = 16;

int log2_of(int64_t element_size) {
  int log2 = 0;
  while ((int64_t{1} << log2) < element_size) ++log2;
  check(log2 < 4 && (int64_t{1} << log2) == element_size, "elements have 1, 2, 4 or 8 bytes");
  return log2;
}

}  // namespace

std::vector<CopyDimension> collapse(const std::vector<CopyDimension>& dimensions) {
  std::vector<CopyDimension> merged;
  for (const CopyDimension& inner : dimensions) {
    if (inner.size == 1) continue;
    if (!merged.empty() && merged.back().from == inner.from * inner.size && merged.back().to == inner.to * inner.size)
      merged.back() = {merged.back().size * inner.size, inner.from, inner.to};
    else
      merged.push_back(inner);
  }
  return merged;
}

std::vector<CopyDimension> copy_dimensions(const Shape& shape, const std::vector<int64_t>& from,
                                           const std::vector<int64_t>& to) {
  std::vector<CopyDimension> dimensions;
  for (size_t axis = 0; axis < from.size(); ++axis) dimensions.push_back({shape.dims()[axis], from[axis], to[axis]});
  return dimensions;
}

StridedCopy::StridedCopy(const std::vector<CopyDimension>& dimensions, int64_t element_size, int64_t from_base,
                         int64_t to_base, Isa isa)
    : dimensions_(collapse(dimensions)), from_base_(from_base * element_size), to_base_(to_base * element_size) {
  if (dimensions_.empty()) dimensions_.push_back({1, 1, 1});
  if (dimensions_.size() == 1) dimensions_.insert(dimensions_.begin(), {1, 0, 0});
  check(dimensions_.size() <= kMaximumRank, "a copy of more dimensions than any tensor here has");
  for (CopyDimension& dimension : dimensions_) {
    elements_ *= dimension.size;
    dimension.from *= element_size;
    dimension.to *= element_size;
  }
  const CopyDimension& row = dimensions_.back();
  const Loops& loops = loops_for(isa);
  const bool packs = row.to == element_size;
  const auto& rows = packs && row.from == element_size ? loops.contiguous
                     : packs && row.from == 0          ? loops.repeat
                                                       : loops.strided;
  copy_rows_ = rows[log2_of(element_size)];
}

void StridedCopy::run(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const {
  std::array<int64_t, kMaximumRank> index{};
  from += from_base_;
  to += to_base_;
  int64_t position = begin;
  for (size_t axis = dimensions_.size(); axis-- > 0; position /= dimensions_[axis].size) {
    index[axis] = position % dimensions_[axis].size;
    from += index[axis] * dimensions_[axis].from;
    to += index[axis] * dimensions_[axis].to;
  }
  const size_t last = dimensions_.size() - 1;
  const CopyDimension &row = dimensions_[last], &rows = dimensions_[last - 1];
  while (begin < end) {
    // The rest of a row, or as many whole rows as lie one stride apart.
    const bool whole = index[last] == 0 && end - begin >= row.size;
    const int64_t count = whole ? row.size : std::min(row.size - index[last], end - begin);
    const int64_t row_count = whole ? std::min(rows.size - index[last - 1], (end - begin) / row.size) : 1;
    copy_rows_({to, from, row_count, rows.to, rows.from, count, row.to, row.from});
    begin += count * row_count;
    from += row_count * rows.from - index[last] * row.from;
    to += row_count * rows.to - index[last] * row.to;
    index[last] = 0;
    index[last - 1] += row_count;
    for (size_t axis = last - 1; axis > 0 && index[axis] == dimensions_[axis].size; --axis) {
      index[axis] = 0;
      from += dimensions_[axis - 1].from - dimensions_[axis].size * dimensions_[axis].from;
      to += dimensions_[axis - 1].to - dimensions_[axis].size * dimensions_[axis].to;
      ++index[axis - 1];
    }
  }
}

}  // namespace weft::native
