#include "weft/runtime/native/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::native {

namespace {

constexpr int64_t kTile = 16;      // rows and columns: one cache line of floats each way
constexpr int64_t kGrain = 16384;  // elements that are worth a thread

bool is_run(const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != offsets[0] + static_cast<int64_t>(i)) return false;
  return true;
}

/// The typical distance between neighbours along an axis; axes of one index come outermost.
int64_t step_of(const std::vector<int64_t>& offsets) {
  return offsets.size() < 2 ? std::numeric_limits<int64_t>::max() : offsets[1] - offsets[0];
}

}  // namespace

AxisOffsets axis_offsets(const TensorType& type, const std::vector<int64_t>& first, const std::vector<int64_t>& dims) {
  AxisOffsets offsets(dims.size());
  std::vector<int64_t> index(dims.size(), 0);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    for (int64_t i = 0; i < dims[axis]; ++i) {
      index[axis] = first[axis] + i;
      offsets[axis].push_back(storage_offset(type.shape, type.layout, index));
    }
    index[axis] = 0;
  }
  return offsets;
}

AxisOffsets axis_offsets(const TensorType& type) {
  return axis_offsets(type, std::vector<int64_t>(static_cast<size_t>(type.shape.rank()), 0), type.shape.dims());
}

StridedCopy::StridedCopy(AxisOffsets from, AxisOffsets to, int64_t element_bytes) : element_bytes_(element_bytes) {
  check(from.size() == to.size(), "a strided copy wants as many axes on both sides");
  std::vector<size_t> order(to.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return step_of(to[a]) > step_of(to[b]); });
  // The tile's other side is the axis along which the source runs, so that whole cache lines are used on both sides.
  if (order.size() >= 3) {
    const auto nearest = std::min_element(order.begin(), order.end() - 1, [&](size_t a, size_t b) {
      return std::abs(step_of(from[a])) < std::abs(step_of(from[b]));
    });
    if (std::abs(step_of(from[*nearest])) < std::abs(step_of(from[order.back()])))
      std::rotate(nearest, nearest + 1, order.end() - 1);
  }
  const auto make_axis = [&](size_t axis) {
    check(from[axis].size() == to[axis].size(), "a strided copy wants axes of one length on both sides");
    Axis result{std::move(from[axis]), std::move(to[axis])};
    result.from_is_run = is_run(result.from);
    result.to_is_run = is_run(result.to);
    result.from_is_fixed = std::all_of(result.from.begin(), result.from.end(),
                                       [&](int64_t offset) { return offset == result.from.front(); });
    total_ *= static_cast<int64_t>(result.to.size());
    return result;
  };
  const Axis single{{0}, {0}, true, true, true};
  columns_ = order.empty() ? single : make_axis(order.back());
  rows_ = order.size() < 2 ? single : make_axis(order[order.size() - 2]);
  for (size_t i = 0; i + 2 < order.size(); ++i) {
    outer_.push_back(make_axis(order[i]));
    outer_count_ *= static_cast<int64_t>(outer_.back().to.size());
  }
}

template <typename Element>
void StridedCopy::copy_rows(const Element* source, Element* target, int64_t piece) const {
  const auto row_count = static_cast<int64_t>(rows_.to.size()), columns = static_cast<int64_t>(columns_.to.size());
  const int64_t pieces = (row_count + kTile - 1) / kTile;
  int64_t rest = piece / pieces, from_base = 0, to_base = 0;
  for (size_t axis = outer_.size(); axis-- > 0;) {
    const auto dim = static_cast<int64_t>(outer_[axis].to.size());
    from_base += outer_[axis].from[static_cast<size_t>(rest % dim)];
    to_base += outer_[axis].to[static_cast<size_t>(rest % dim)];
    rest /= dim;
  }
  const int64_t first = piece % pieces * kTile, last = std::min(first + kTile, row_count);
  const int64_t *from_rows = rows_.from.data(), *to_rows = rows_.to.data();
  const int64_t *from_columns = columns_.from.data(), *to_columns = columns_.to.data();
  if (columns_.to_is_run && (columns_.from_is_run || columns_.from_is_fixed)) {
    for (int64_t row = first; row < last; ++row) {
      const Element* from = source + from_base + from_rows[row] + from_columns[0];
      Element* to = target + to_base + to_rows[row] + to_columns[0];
      if (columns_.from_is_run)
        std::memcpy(to, from, static_cast<size_t>(columns) * sizeof(Element));
      else
        std::fill(to, to + columns, *from);
    }
    return;
  }
  for (int64_t begin = 0; begin < columns; begin += kTile) {
    const int64_t end = std::min(begin + kTile, columns);
    for (int64_t row = first; row < last; ++row) {
      const Element* from = source + from_base + from_rows[row];
      Element* to = target + to_base + to_rows[row];
      for (int64_t column = begin; column < end; ++column) to[to_columns[column]] = from[from_columns[column]];
    }
  }
}

template <typename Element>
void StridedCopy::run_typed(const Element* source, Element* target, int threads) const {
  const int64_t pieces = outer_count_ * ((static_cast<int64_t>(rows_.to.size()) + kTile - 1) / kTile);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, total_ / std::max<int64_t>(1, pieces)));
  parallel_for(threads, pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) copy_rows(source, target, piece);
  });
}

void StridedCopy::run(const void* source, void* target, int threads) const {
  if (total_ == 0) return;
  switch (element_bytes_) {
    case 1:
      return run_typed(static_cast<const uint8_t*>(source), static_cast<uint8_t*>(target), threads);
    case 2:
      return run_typed(static_cast<const uint16_t*>(source), static_cast<uint16_t*>(target), threads);
    case 4:
      return run_typed(static_cast<const uint32_t*>(source), static_cast<uint32_t*>(target), threads);
    default:
      return run_typed(static_cast<const uint64_t*>(source), static_cast<uint64_t*>(target), threads);
  }
}

}  // namespace weft::native
