// What the kernels share that follow indices, or walk along an axis.
#pragma once

#include <cstdint>
#include <limits>

#include "weft/tensor/element.h"
#include "weft/tensor/shape.h"

namespace weft::reference {

/// A row-major shape around one axis.
struct AxisGrid {
  int64_t outer = 1, length, inner = 1;
  AxisGrid(const Shape& shape, int64_t given) {
    const int axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
    length = shape[axis];
    for (int at = 0; at < axis; ++at) outer *= shape[at];
    for (int at = axis + 1; at < shape.rank(); ++at) inner *= shape[at];
  }
  int64_t operator()(int64_t o, int64_t k, int64_t i) const { return (o * length + k) * inner + i; }
  /// Calls visit(o, i) for every line along the axis.
  template <typename Visit>
  void for_each_line(Visit&& visit) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) visit(o, i);
  }
};

/// For an index that names no element: NaN, which shows in the loss, or 0 where there is none.
inline void store_nothing(DType dtype, void* data, int64_t index) {
  store_element(dtype, data, index, is_floating(dtype) ? std::numeric_limits<double>::quiet_NaN() : 0);
}

}  // namespace weft::reference
