#include "weft/tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace weft {

int64_t Shape::elements() const {
  int64_t product = 1;
  for (const int64_t dim : dims_) product *= dim;
  return product;
}

bool has_bounded_size(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && product > kMostElements / dim)) return false;
    product *= std::max<int64_t>(dim, 1);
  }
  return true;
}

std::string to_string(const Shape& shape) { return fmt::format("({})", fmt::join(shape.dims(), ",")); }

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 1);
  for (int axis = shape.rank() - 2; axis >= 0; --axis)
    strides[static_cast<size_t>(axis)] = strides[static_cast<size_t>(axis) + 1] * shape[axis + 1];
  return strides;
}

}  // namespace weft
