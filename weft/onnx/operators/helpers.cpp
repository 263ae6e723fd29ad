#include "weft/onnx/operators/helpers.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace weft::onnx {

int64_t resolve_axis(const NodeAttributes& node, int64_t axis, int64_t rank) {
  const int64_t resolved = axis < 0 ? axis + rank : axis;
  if (resolved < 0 || resolved >= rank)
    node.fail(fmt::format("has the axis {}, but its operand has {} dimensions", axis, rank));
  return resolved;
}

std::vector<int64_t> resolve_axes(const NodeAttributes& node, std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes) axis = resolve_axis(node, axis, rank);
  auto sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) node.fail("names an axis twice");
  return axes;
}

std::vector<int64_t> all_axes(int64_t count) {
  std::vector<int64_t> axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

bool is_compute_dtype(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

ValueId computed_in_f32(Graph& graph, ValueId x, const std::function<ValueId(ValueId)>& function) {
  const DType dtype = graph.type(x).dtype;
  if (is_compute_dtype(dtype)) return function(x);
  return ops::cast(graph, function(ops::cast(graph, x, DType::f32)), dtype);
}

ValueId computed_in_reals(Graph& graph, ValueId x, const std::function<ValueId(ValueId)>& function) {
  return graph.type(x).dtype == DType::f64 ? function(x) : computed_in_f32(graph, x, function);
}

ValueId scalar_like(Graph& graph, ValueId like, double value) {
  const ValueId number = ops::constant(graph, Shape{}, value);
  const DType dtype = graph.type(like).dtype;
  return dtype == DType::f32 ? number : ops::cast(graph, number, dtype);
}

ValueId as_boolean(Graph& graph, ValueId comparison) {
  return graph.type(comparison).dtype == DType::boolean ? comparison : ops::cast(graph, comparison, DType::boolean);
}

ValueId squeeze(Graph& graph, ValueId x, const std::vector<int64_t>& axes, const std::string& name) {
  std::vector<int64_t> shape;
  for (int axis = 0; axis < graph.shape(x).rank(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) shape.push_back(graph.shape(x)[axis]);
  return ops::reshape(graph, x, shape, name);
}

ValueId unsqueeze(Graph& graph, ValueId x, const std::vector<int64_t>& axes, const std::string& name) {
  std::vector<int64_t> shape;
  int from = 0;
  const auto rank = graph.shape(x).rank() + static_cast<int64_t>(axes.size());
  for (int64_t axis = 0; axis < rank; ++axis)
    shape.push_back(std::find(axes.begin(), axes.end(), axis) != axes.end() ? 1 : graph.shape(x)[from++]);
  return ops::reshape(graph, x, shape, name);
}

ValueId flattened(Graph& graph, ValueId x, int64_t axis, const std::string& name) {
  int64_t rows = 1, columns = 1;
  for (int each = 0; each < graph.shape(x).rank(); ++each) (each < axis ? rows : columns) *= graph.shape(x)[each];
  return ops::reshape(graph, x, {rows, columns}, name);
}

Shape broadcast_shape(const NodeAttributes& node, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> result;
  for (int axis = 0; axis < rank; ++axis) {
    const int in_a = axis - (rank - a.rank()), in_b = axis - (rank - b.rank());
    const int64_t left = in_a < 0 ? 1 : a[in_a], right = in_b < 0 ? 1 : b[in_b];
    if (left != right && left != 1 && right != 1)
      node.fail(fmt::format("the shapes {} and {} do not fit each other", to_string(a), to_string(b)));
    result.push_back(left == 1 ? right : left);
  }
  return Shape(result);
}

void require_sizes(const NodeAttributes& node, const char* what, const std::vector<int64_t>& numbers) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t number : numbers)
    if (number < -kMost || number > kMost) node.fail(fmt::format("has {} of {}, more than any axis has", what, number));
}

void require_small(const NodeAttributes& node, const char* what, const std::vector<int64_t>& sizes) {
  constexpr double kMost = 0x1p28;
  double elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<double>(size);
  if (!(elements <= kMost)) node.fail(fmt::format("would need {} of {:.3g} elements", what, elements));
}

Padding find_padding(const NodeAttributes& node, const std::vector<int64_t>& sizes, const std::vector<int64_t>& kernel,
                     const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations) {
  const size_t rank = sizes.size();
  for (const auto& [what, numbers] :
       {std::pair("a kernel", &kernel), {"strides", &strides}, {"dilations", &dilations}}) {
    require_sizes(node, what, *numbers);
    for (const int64_t number : *numbers)
      if (number < 1) node.fail(fmt::format("has {} of {}, but wants 1 or more", what, number));
  }
  const std::string automatic = node.text("auto_pad", "NOTSET");
  Padding result{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 0)};
  if (automatic == "VALID") return result;
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t windows = (sizes[axis] + strides[axis] - 1) / strides[axis];
      const int64_t wanted = (windows - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1;
      const int64_t total = std::max<int64_t>(0, wanted - sizes[axis]);
      const int64_t smaller = total / 2, larger = total - smaller;
      result.before[axis] = automatic == "SAME_UPPER" ? smaller : larger;
      result.after[axis] = automatic == "SAME_UPPER" ? larger : smaller;
    }
    return result;
  }
  if (automatic != "NOTSET") node.fail("has the unknown auto_pad '" + automatic + "'");
  const auto pads = node.integers("pads", std::vector<int64_t>(2 * rank, 0));
  if (pads.size() != 2 * rank)
    node.fail(fmt::format("has {} pads, but wants {} for {} axes", pads.size(), 2 * rank, rank));
  require_sizes(node, "pads", pads);
  for (size_t axis = 0; axis < rank; ++axis) {
    result.before[axis] = pads[axis];
    result.after[axis] = pads[rank + axis];
  }
  return result;
}

}  // namespace weft::onnx
