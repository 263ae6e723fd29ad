// What the conversions of several families share.
#pragma once

#include "weft/onnx/operators/context.h"
#include "weft/ops/ops.h"

namespace weft::onnx {

/// From 0 to rank - 1; Error(usage) names the node.
int64_t resolve_axis(const NodeAttributes& node, int64_t axis, int64_t rank);
std::vector<int64_t> resolve_axes(const NodeAttributes& node, std::vector<int64_t> axes, int64_t rank);
/// The numbers from 0 to count - 1.
std::vector<int64_t> all_axes(int64_t count);

/// Both cast to the type in which weft computes such a function (f32 for f64), and its result cast back.
ValueId computed_in_f32(Graph& graph, ValueId x, const std::function<ValueId(ValueId)>& function);
/// The same, of f64 in f64: for functions of ops whose reference kernels take it.
ValueId computed_in_reals(Graph& graph, ValueId x, const std::function<ValueId(ValueId)>& function);
/// Types that weft's functions of reals take as they are.
bool is_compute_dtype(DType dtype);

/// One number of the value's type and of no shape.
ValueId scalar_like(Graph& graph, ValueId like, double value);
/// A result of a comparison as a boolean: for reals weft's are 1 and 0.
ValueId as_boolean(Graph& graph, ValueId comparison);
/// Through a node of the axes: the reshape that puts `permutation` first and merges the rest is left to the caller.
ValueId squeeze(Graph& graph, ValueId x, const std::vector<int64_t>& axes, const std::string& name = "");
/// Dimensions of 1 at these axes of the result.
ValueId unsqueeze(Graph& graph, ValueId x, const std::vector<int64_t>& axes, const std::string& name = "");
/// Two dimensions: the product of those before the axis, and of the others.
ValueId flattened(Graph& graph, ValueId x, int64_t axis, const std::string& name = "");
/// By NumPy's rules; Error(usage) names the node.
Shape broadcast_shape(const NodeAttributes& node, const Shape& a, const Shape& b);
/// Error(usage) where one of the numbers is beyond what any axis can have: sums and products of two of the others fit
/// an int64_t. `what` names them: "pads".
void require_sizes(const NodeAttributes& node, const char* what, const std::vector<int64_t>& numbers);
/// Error(usage) where a result of so many elements is beyond reason for what is computed while a model is lowered.
void require_small(const NodeAttributes& node, const char* what, const std::vector<int64_t>& sizes);
/// What older versions call auto_pad: (before, after) of each spatial axis. `pads` is the node's own where there is
/// none. Error(usage) where the window is not of at least 1 in each axis.
struct Padding {
  std::vector<int64_t> before, after;
};
Padding find_padding(const NodeAttributes& node, const std::vector<int64_t>& sizes, const std::vector<int64_t>& kernel,
                     const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations);
/// Where every number of a list is the same as in the other.
inline bool all_are(const std::vector<int64_t>& values, int64_t value) {
  for (const int64_t each : values)
    if (each != value) return false;
  return true;
}

}  // namespace weft::onnx
