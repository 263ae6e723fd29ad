// NumPy's broadcasting of shapes, and axes that may count from the end.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/graph/op_def.h"

namespace weft::ops {

/// The shape to which both broadcast: aligned at the last axis, a dimension of 1 (or an absent one) stretches.
/// nullopt where they do not fit.
inline std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) {
    const int in_a = axis - (rank - a.rank()), in_b = axis - (rank - b.rank());
    const int64_t from_a = in_a < 0 ? 1 : a[in_a], from_b = in_b < 0 ? 1 : b[in_b];
    if (from_a != from_b && from_a != 1 && from_b != 1) return std::nullopt;
    dims[static_cast<size_t>(axis)] = from_a == 1 ? from_b : from_a;
  }
  return Shape(std::move(dims));
}

/// True where a tensor of shape `from` can be stretched to `to` without changing `to`.
inline bool broadcasts_to(const Shape& from, const Shape& to) { return broadcast_shapes(from, to) == to; }

/// The common shape of two operands; a shape error that shows both where they do not fit.
inline Shape broadcast_operands(const InferContext& context, int a, int b) {
  auto shape = broadcast_shapes(context.shape(a), context.shape(b));
  if (!shape)
    context.fail(context.describe(a) + " and " + context.describe(b) +
                 " do not broadcast: aligned at the last axis, their dimensions must be equal or 1");
  return *std::move(shape);
}

/// An axis in [0, rank), where negative ones count from the end; nullopt where out of range.
inline std::optional<int> normalize_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// The axis in [0, rank of operand `input`); a shape error that names the attribute where out of range.
inline int require_axis(const InferContext& context, int input, int64_t axis, const char* attribute = "axis") {
  const int rank = context.shape(input).rank();
  const auto normal = normalize_axis(axis, rank);
  if (!normal)
    context.fail(fmt::format("{} {} is not an axis of {}; {}", attribute, axis, context.describe(input),
                             rank == 0 ? "a scalar has none" : fmt::format("give one of {}..{}", -rank, rank - 1)));
  return *normal;
}

/// The axes in ascending order, each once; all of them where the list is empty. For attributes already checked.
inline std::vector<int> normalize_axes(const std::vector<int64_t>& axes, int rank) {
  std::vector<int> result;
  for (const int64_t axis : axes) result.push_back(normalize_axis(axis, rank).value());
  if (axes.empty())
    for (int axis = 0; axis < rank; ++axis) result.push_back(axis);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace weft::ops
