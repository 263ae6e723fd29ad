// Pooling: weft's own ops where windows are as theirs, else composed of the slices that the windows' elements make.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

struct Pool {
  std::vector<int64_t> sizes, kernel, strides, dilations, before, after, windows;

  size_t axes() const { return sizes.size(); }
  int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  int64_t area() const {
    int64_t product = 1;
    for (const int64_t size : kernel) product *= size;
    return product;
  }
};

Pool find_pool(NodeContext& node) {
  if (node.rank(0) < 3) node.fail(fmt::format("wants spatial axes, got {}", to_string(node.shape(0))));
  Pool pool;
  const Shape shape = node.shape(0);
  pool.sizes = {shape.begin() + 2, shape.end()};
  const std::vector<int64_t> ones(pool.axes(), 1);
  pool.kernel = node.integers("kernel_shape");
  pool.strides = node.integers("strides", ones);
  pool.dilations = node.integers("dilations", ones);
  if (pool.kernel.size() != pool.axes() || pool.strides.size() != pool.axes() || pool.dilations.size() != pool.axes())
    node.fail(fmt::format("wants a kernel, strides and dilations of {} axes", pool.axes()));
  const Padding padding = find_padding(node, pool.sizes, pool.kernel, pool.strides, pool.dilations);
  pool.before = padding.before;
  pool.after = padding.after;
  const bool rounds_up = node.integer("ceil_mode", 0) != 0;
  for (size_t axis = 0; axis < pool.axes(); ++axis) {
    const int64_t whole = pool.sizes[axis] + pool.before[axis] + pool.after[axis];
    const int64_t room = whole - pool.reach(axis);
    if (room < 0) node.fail("has a window larger than its padded operand");
    int64_t count = (room + (rounds_up ? pool.strides[axis] - 1 : 0)) / pool.strides[axis] + 1;
    // A last window that would begin behind the operand is none.
    if (rounds_up && (count - 1) * pool.strides[axis] >= pool.sizes[axis] + pool.before[axis]) --count;
    pool.windows.push_back(count);
  }
  require_small(node, "a window", pool.kernel);
  return pool;
}

/// With so much behind that the last window fits.
ValueId filled(Graph& graph, ValueId x, const Pool& pool, AttributeValue fill) {
  std::vector<int64_t> low = {0, 0}, high = {0, 0};
  for (size_t axis = 0; axis < pool.axes(); ++axis) {
    low.push_back(pool.before[axis]);
    const int64_t want = (pool.windows[axis] - 1) * pool.strides[axis] + pool.reach(axis);
    high.push_back(std::max<int64_t>(0, want - pool.sizes[axis] - pool.before[axis]));
  }
  if (all_are(low, 0) && all_are(high, 0)) return x;
  return graph.add("pad", {x}, {{"low", low}, {"high", high}, {"value", std::move(fill)}});
}

/// Calls function(element of each window, in row-major order of the kernel).
void for_each_element(Graph& graph, ValueId x, const Pool& pool, const std::function<void(ValueId)>& function) {
  std::vector<int64_t> at(pool.axes(), 0);
  for (int64_t element = 0; element < pool.area(); ++element) {
    std::vector<int64_t> starts = {0, 0}, ends = {graph.shape(x)[0], graph.shape(x)[1]}, steps = {1, 1};
    for (size_t axis = 0; axis < pool.axes(); ++axis) {
      const int64_t first = at[axis] * pool.dilations[axis];
      starts.push_back(first);
      ends.push_back(first + (pool.windows[axis] - 1) * pool.strides[axis] + 1);
      steps.push_back(pool.strides[axis]);
    }
    function(ops::strided_slice(graph, x, starts, ends, steps));
    for (size_t axis = pool.axes(); axis-- > 0;) {
      if (++at[axis] < pool.kernel[axis]) break;
      at[axis] = 0;
    }
  }
}

/// Rows become images of one row.
ValueId as_image(Graph& graph, ValueId x) {
  const Shape shape = graph.shape(x);
  return shape.rank() == 3 ? ops::reshape(graph, x, {shape[0], shape[1], 1, shape[2]}) : x;
}

ValueId from_image(Graph& graph, ValueId y, int rank) { return rank == 3 ? squeeze(graph, y, {2}) : y; }

ops::Pool2dOptions image_options(const Pool& pool, bool with_padding) {
  ops::Pool2dOptions options;
  const bool is_row = pool.axes() == 1;
  const auto pair = [&](const std::vector<int64_t>& values, int64_t row) -> ops::Pair {
    return is_row ? ops::Pair{row, values[0]} : ops::Pair{values[0], values[1]};
  };
  options.kernel = pair(pool.kernel, 1);
  options.stride = pair(pool.strides, 1);
  options.padding = with_padding ? pair(pool.before, 0) : ops::Pair{0, 0};
  return options;
}

/// Whether weft's pooling of images cuts the same windows, its padding being the same on both sides.
bool has_own_windows(const Pool& pool) {
  if (pool.axes() > 2 || !all_are(pool.dilations, 1)) return false;
  for (size_t axis = 0; axis < pool.axes(); ++axis) {
    const int64_t whole = pool.sizes[axis] + 2 * pool.before[axis];
    if (pool.before[axis] >= pool.kernel[axis] || whole < pool.kernel[axis]) return false;
    if ((whole - pool.kernel[axis]) / pool.strides[axis] + 1 != pool.windows[axis]) return false;
  }
  return true;
}

AttributeValue lowest(DType dtype) {
  if (is_floating(dtype)) return -std::numeric_limits<double>::infinity();
  if (!is_signed(dtype)) return int64_t{0};
  return -(int64_t{1} << (bits_of(dtype) - 1));
}

/// The places of the largest elements in the whole operand, as ONNX counts them.
std::vector<ValueId> max_with_places(NodeContext& node, const Pool& pool) {
  Graph& graph = node.graph();
  const bool by_columns = node.integer("storage_order", 0) != 0;
  const Shape shape = node.shape(0);
  Tensor places(DType::i64, shape);
  const int64_t spatial = std::max<int64_t>(1, shape.elements() / std::max<int64_t>(1, shape[0] * shape[1]));
  for (int64_t index = 0; index < shape.elements(); ++index) {
    int64_t place = index;
    if (by_columns) {
      int64_t rest = index % spatial, stride = 1, within = 0;
      std::vector<int64_t> at(pool.axes());
      for (size_t axis = pool.axes(); axis-- > 0;) {
        at[axis] = rest % pool.sizes[axis];
        rest /= pool.sizes[axis];
      }
      for (size_t axis = 0; axis < pool.axes(); ++axis) {
        within += at[axis] * stride;
        stride *= pool.sizes[axis];
      }
      place = index / spatial * spatial + within;
    }
    places.data_as<int64_t>()[index] = place;
  }
  const ValueId numbers = filled(graph, ops::constant_tensor(graph, Constant(places)), pool, int64_t{-1});
  const ValueId x = filled(graph, node.value(0), pool, lowest(node.dtype(0)));
  std::vector<ValueId> values, where;
  for_each_element(graph, x, pool, [&](ValueId element) { values.push_back(element); });
  for_each_element(graph, numbers, pool, [&](ValueId element) { where.push_back(element); });
  ValueId best = values[0], place = where[0];
  for (size_t index = 1; index < values.size(); ++index) {
    ValueId is_larger = as_boolean(graph, ops::greater(graph, values[index], best));
    best = ops::where(graph, is_larger, values[index], best);
    place = ops::where(graph, is_larger, where[index], place);
  }
  return {best, place};
}

std::vector<ValueId> convert_max_pool(NodeContext& node) {
  Graph& graph = node.graph();
  const Pool pool = find_pool(node);
  if (node.wants(1)) return max_with_places(node, pool);
  const DType dtype = node.dtype(0);
  ValueId x = node.value(0);
  const bool is_byte = dtype == DType::i8 || dtype == DType::u8;
  if ((is_compute_dtype(dtype) || is_byte) && pool.axes() <= 2 && all_are(pool.dilations, 1)) {
    const bool is_own = has_own_windows(pool);
    if (!is_own) x = filled(graph, x, pool, lowest(dtype));
    const ValueId y = ops::max_pool2d(graph, as_image(graph, x), image_options(pool, is_own), node.hint());
    return {from_image(graph, y, node.rank(0))};
  }
  x = filled(graph, x, pool, lowest(dtype));
  ValueId result{};
  for_each_element(graph, x, pool,
                   [&](ValueId element) { result = result.valid() ? ops::maximum(graph, result, element) : element; });
  return {result};
}

/// 1 / how many elements count in each window, of the spatial shape of the result.
Tensor shares(const Pool& pool, bool counts_padding) {
  std::vector<int64_t> shape = {1, 1};
  shape.insert(shape.end(), pool.windows.begin(), pool.windows.end());
  Tensor result(DType::f32, Shape(shape));
  for (int64_t index = 0; index < result.elements(); ++index) {
    int64_t rest = index, count = 1;
    for (size_t axis = pool.axes(); axis-- > 0;) {
      const int64_t begin = rest % pool.windows[axis] * pool.strides[axis] - pool.before[axis];
      rest /= pool.windows[axis];
      int64_t inside = 0;
      for (int64_t k = 0; k < pool.kernel[axis]; ++k) {
        const int64_t at = begin + k * pool.dilations[axis];
        const int64_t low = counts_padding ? -pool.before[axis] : 0;
        const int64_t high = pool.sizes[axis] + (counts_padding ? pool.after[axis] : 0);
        inside += at >= low && at < high;
      }
      count *= inside;
    }
    result.data_as<float>()[index] = 1.0F / static_cast<float>(std::max<int64_t>(1, count));
  }
  return result;
}

/// The sum of each window's elements, padding being 0.
ValueId window_sums(Graph& graph, ValueId x, const Pool& pool) {
  x = filled(graph, x, pool, 0.0);
  if (pool.axes() <= 2 && all_are(pool.dilations, 1)) {
    const int rank = graph.shape(x).rank();
    const ValueId mean = ops::avg_pool2d(graph, as_image(graph, x), image_options(pool, false));
    return from_image(graph, ops::multiply_scalar(graph, mean, static_cast<double>(pool.area())), rank);
  }
  ValueId result{};
  for_each_element(graph, x, pool,
                   [&](ValueId element) { result = result.valid() ? ops::add(graph, result, element) : element; });
  return result;
}

std::vector<ValueId> convert_average_pool(NodeContext& node) {
  Graph& graph = node.graph();
  const Pool pool = find_pool(node);
  const bool counts_padding = node.integer("count_include_pad", 0) != 0;
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    if (has_own_windows(pool) && (!counts_padding || pool.before == pool.after)) {
      const ops::Pool2dOptions options = image_options(pool, true);
      const auto list = [](const ops::Pair& pair) { return std::vector<int64_t>{pair[0], pair[1]}; };
      const ValueId y = graph.add("avg_pool2d", {as_image(graph, x)},
                                  {{"kernel", list(options.kernel)},
                                   {"stride", list(options.stride)},
                                   {"padding", list(options.padding)},
                                   {"count_padding", counts_padding}},
                                  node.hint());
      return from_image(graph, y, node.rank(0));
    }
    const ValueId sums = window_sums(graph, x, pool);
    ValueId factors = ops::constant_tensor(graph, Constant(shares(pool, counts_padding)));
    if (graph.type(sums).dtype != DType::f32) factors = ops::cast(graph, factors, graph.type(sums).dtype);
    return ops::multiply(graph, sums, factors, node.hint());
  })};
}

ValueId power(Graph& graph, ValueId x, double exponent) {
  const ValueId size = ops::absolute(graph, x);
  return exponent == 1 ? size : ops::pow_scalar(graph, size, exponent);
}

std::vector<ValueId> convert_lp_pool(NodeContext& node) {
  Graph& graph = node.graph();
  const Pool pool = find_pool(node);
  const double p = node.opset() < 2 ? node.real("p", 2) : static_cast<double>(node.integer("p", 2));
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    return ops::pow_scalar(graph, window_sums(graph, power(graph, x, p), pool), 1 / p, node.hint());
  })};
}

std::vector<int64_t> spatial_axes(NodeContext& node) {
  std::vector<int64_t> axes;
  for (int axis = 2; axis < node.rank(0); ++axis) axes.push_back(axis);
  if (axes.empty()) node.fail(fmt::format("wants spatial axes, got {}", to_string(node.shape(0))));
  return axes;
}

std::vector<ValueId> convert_global_average(NodeContext& node) {
  Graph& graph = node.graph();
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    if (node.rank(0) == 4)
      return ops::reshape(graph, ops::global_avg_pool2d(graph, x), {node.shape(0)[0], node.shape(0)[1], 1, 1},
                          node.hint());
    return ops::reduce_mean(graph, x, spatial_axes(node), true, node.hint());
  })};
}

std::vector<ValueId> convert_global_max(NodeContext& node) {
  return {ops::reduce_max(node.graph(), node.value(0), spatial_axes(node), true, node.hint())};
}

std::vector<ValueId> convert_global_lp(NodeContext& node) {
  Graph& graph = node.graph();
  const double p = node.opset() < 2 ? node.real("p", 2) : static_cast<double>(node.integer("p", 2));
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    const ValueId sum = ops::reduce_sum(graph, power(graph, x, p), spatial_axes(node), true);
    return ops::pow_scalar(graph, sum, 1 / p, node.hint());
  })};
}

}  // namespace

void add_pooling(OperatorTable& table) {
  const std::string family = "pooling";
  table.add(family, "MaxPool", convert_max_pool);
  table.add(family, "AveragePool", convert_average_pool);
  table.add(family, "LpPool", convert_lp_pool);
  table.add(family, "GlobalAveragePool", convert_global_average);
  table.add(family, "GlobalMaxPool", convert_global_max);
  table.add(family, "GlobalLpPool", convert_global_lp);
}

}  // namespace weft::onnx
