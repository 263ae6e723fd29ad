// Convolutions over one, two and three axes.
#include <algorithm>

#include "weft/onnx/operators/convolve.h"
#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

/// What a convolution says of its spatial axes.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  Padding padding;
  int64_t groups = 1;
  bool is_exact = false;
};

std::vector<int64_t> spatial(const Shape& shape) { return {shape.dims().begin() + 2, shape.dims().end()}; }

Window find_window(NodeContext& node, const Shape& x, const Shape& weight) {
  const int rank = x.rank();
  if (rank < 3 || rank > 5) node.fail(fmt::format("wants 1 to 3 spatial axes, got {}", to_string(x)));
  if (weight.rank() != rank) node.fail(fmt::format("wants weights of {} dimensions, got {}", rank, to_string(weight)));
  Window window;
  const auto axes = static_cast<size_t>(rank - 2);
  const std::vector<int64_t> ones(axes, 1);
  window.kernel = spatial(weight);
  window.strides = node.integers("strides", ones);
  window.dilations = node.integers("dilations", ones);
  window.groups = node.integer("group", 1);
  if (window.strides.size() != axes || window.dilations.size() != axes)
    node.fail(fmt::format("wants {} strides and dilations", axes));
  for (size_t axis = 0; axis < axes; ++axis)
    if (window.strides[axis] < 1 || window.dilations[axis] < 1) node.fail("wants strides and dilations of at least 1");
  require_sizes(node, "strides", window.strides);
  require_sizes(node, "dilations", window.dilations);
  return window;
}

/// The number of axes behind the channels that `ops` calculates with.
ValueId with_bias(NodeContext& node, ValueId result) {
  if (!node.has(2)) return result;
  if (node.rank(2) != 1) node.fail("wants a bias per channel, got " + to_string(node.shape(2)));
  std::vector<int64_t> shape(static_cast<size_t>(node.graph().shape(result).rank()), 1);
  shape[1] = node.shape(2)[0];
  return ops::add(node.graph(), result, ops::reshape(node.graph(), node.value(2), shape), node.hint());
}

/// Zeros around the spatial axes; nothing where there are none.
ValueId padded(Graph& graph, ValueId x, const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  if (all_are(before, 0) && all_are(after, 0)) return x;
  std::vector<int64_t> low = {0, 0}, high = {0, 0};
  low.insert(low.end(), before.begin(), before.end());
  high.insert(high.end(), after.begin(), after.end());
  // What is negative cuts off.
  std::vector<int64_t> starts(low.size(), 0), ends = graph.shape(x).dims();
  bool cuts = false;
  for (size_t axis = 0; axis < low.size(); ++axis) {
    cuts = cuts || low[axis] < 0 || high[axis] < 0;
    starts[axis] = std::max<int64_t>(0, -low[axis]);
    ends[axis] -= std::max<int64_t>(0, -high[axis]);
    low[axis] = std::max<int64_t>(0, low[axis]);
    high[axis] = std::max<int64_t>(0, high[axis]);
  }
  if (cuts) x = ops::slice(graph, x, starts, ends);
  if (all_are(low, 0) && all_are(high, 0)) return x;
  return ops::pad(graph, x, low, high);
}

ValueId convolve_images(Graph& graph, ValueId x, ValueId weight, const Window& window, const std::string& name) {
  const Padding& padding = window.padding;
  ops::Conv2dOptions options;
  options.stride = {window.strides[0], window.strides[1]};
  options.dilation = {window.dilations[0], window.dilations[1]};
  options.groups = window.groups;
  options.is_exact = window.is_exact;
  const bool is_even = padding.before == padding.after && padding.before[0] >= 0 && padding.before[1] >= 0;
  if (is_even)
    options.padding = {padding.before[0], padding.before[1]};
  else
    x = padded(graph, x, padding.before, padding.after);
  return ops::conv2d(graph, x, weight, options, name);
}

/// The last two axes of a window of three, or the one axis of a row.
Window inner_window(const Window& window) {
  Window result = window;
  const auto drop = [](std::vector<int64_t>& values) { values.erase(values.begin()); };
  drop(result.kernel);
  drop(result.strides);
  drop(result.dilations);
  drop(result.padding.before);
  drop(result.padding.after);
  return result;
}

Window row_window(const Window& window) {
  Window result = window;
  const auto lead = [](std::vector<int64_t>& values, int64_t value) { values.insert(values.begin(), value); };
  lead(result.kernel, 1);
  lead(result.strides, 1);
  lead(result.dilations, 1);
  lead(result.padding.before, 0);
  lead(result.padding.after, 0);
  return result;
}

std::vector<int64_t> with_row(const Shape& shape) {
  std::vector<int64_t> dims = shape.dims();
  dims.insert(dims.begin() + 2, 1);
  return dims;
}

ValueId without_row(Graph& graph, ValueId x, const std::string& name) { return squeeze(graph, x, {2}, name); }

/// [N,C,D,H,W] -> [N D,C,H,W]
ValueId depth_to_batch(Graph& graph, ValueId x) {
  const Shape shape = graph.shape(x);
  const ValueId moved = ops::transpose(graph, x, {0, 2, 1, 3, 4});
  return ops::reshape(graph, moved, {shape[0] * shape[2], shape[1], shape[3], shape[4]});
}

ValueId batch_to_depth(Graph& graph, ValueId x, int64_t depth, const std::string& name) {
  const Shape shape = graph.shape(x);
  const ValueId apart = ops::reshape(graph, x, {shape[0] / depth, depth, shape[1], shape[2], shape[3]});
  return ops::transpose(graph, apart, {0, 2, 1, 3, 4}, name);
}

/// One slice of the weights' depth.
ValueId weight_at(Graph& graph, ValueId weight, int64_t depth) {
  std::vector<int64_t> starts(5, 0), ends = graph.shape(weight).dims();
  starts[2] = depth;
  ends[2] = depth + 1;
  return squeeze(graph, ops::slice(graph, weight, starts, ends), {2});
}

/// The sum over the kernel's depth of convolutions of images.
ValueId convolve_volumes(NodeContext& node, ValueId x, ValueId weight, const Window& window) {
  Graph& graph = node.graph();
  const std::string name = node.hint();
  x = padded(graph, x, {window.padding.before[0], 0, 0}, {window.padding.after[0], 0, 0});
  const Shape shape = graph.shape(x);
  const int64_t reach = (window.kernel[0] - 1) * window.dilations[0] + 1;
  if (reach > shape[2]) node.fail("has a window larger than its padded operand");
  const int64_t depth = (shape[2] - reach) / window.strides[0] + 1;
  ValueId sum{};
  for (int64_t at = 0; at < window.kernel[0]; ++at) {
    const int64_t first = at * window.dilations[0];
    const ValueId layers =
        ops::strided_slice(graph, x, {0, 0, first, 0, 0},
                           {shape[0], shape[1], first + (depth - 1) * window.strides[0] + 1, shape[3], shape[4]},
                           {1, 1, window.strides[0], 1, 1});
    const ValueId part =
        convolve_images(graph, depth_to_batch(graph, layers), weight_at(graph, weight, at), inner_window(window), "");
    sum = sum.valid() ? ops::add(graph, sum, part) : part;
  }
  return batch_to_depth(graph, sum, depth, name);
}

std::vector<ValueId> convert_conv(NodeContext& node) {
  return {with_bias(node, convolve(node, node.value(0), node.value(1)))};
}

// --- transposed
// -------------------------------------------------------------------------------------------------------

/// Without any padding: (size - 1) stride + dilation (kernel - 1) + 1.
ValueId spread_images(Graph& graph, ValueId x, ValueId weight, const Window& window) {
  ops::ConvTranspose2dOptions options;
  options.stride = {window.strides[0], window.strides[1]};
  options.dilation = {window.dilations[0], window.dilations[1]};
  options.groups = window.groups;
  return ops::conv_transpose2d(graph, x, weight, options);
}

ValueId spread_volumes(Graph& graph, ValueId x, ValueId weight, const Window& window) {
  const int64_t depth = graph.shape(x)[2], stride = window.strides[0];
  const int64_t whole = (depth - 1) * stride + (window.kernel[0] - 1) * window.dilations[0] + 1;
  ValueId sum{};
  for (int64_t at = 0; at < window.kernel[0]; ++at) {
    const ValueId part = batch_to_depth(
        graph, spread_images(graph, depth_to_batch(graph, x), weight_at(graph, weight, at), inner_window(window)),
        depth, "");
    // Layers of zeros between the layers, then before and behind them.
    const Shape shape = graph.shape(part);
    ValueId apart = ops::reshape(graph, part, {shape[0], shape[1], depth, 1, shape[3], shape[4]});
    apart = ops::pad(graph, apart, {0, 0, 0, 0, 0, 0}, {0, 0, 0, stride - 1, 0, 0});
    apart = ops::reshape(graph, apart, {shape[0], shape[1], depth * stride, shape[3], shape[4]});
    const int64_t before = at * window.dilations[0];
    apart = padded(graph, apart, {before, 0, 0}, {whole - before - depth * stride, 0, 0});
    sum = sum.valid() ? ops::add(graph, sum, apart) : apart;
  }
  return sum;
}

/// What is cut off before and behind; what is negative is zeros that are added.
Padding find_transposed_padding(NodeContext& node, const Window& window, const std::vector<int64_t>& sizes,
                                const std::vector<int64_t>& extra) {
  const size_t axes = sizes.size();
  const std::string automatic = node.text("auto_pad", "NOTSET");
  auto wanted = node.integers("output_shape");
  require_sizes(node, "an output_shape", wanted);
  if (wanted.size() == axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.empty() && (automatic == "SAME_UPPER" || automatic == "SAME_LOWER"))
    for (size_t axis = 0; axis < axes; ++axis) wanted.push_back(sizes[axis] * window.strides[axis]);
  Padding result{std::vector<int64_t>(axes, 0), std::vector<int64_t>(axes, 0)};
  if (wanted.empty()) {
    if (automatic == "VALID") return result;
    return find_padding(node, sizes, window.kernel, window.strides, window.dilations);
  }
  if (wanted.size() != axes) node.fail("has an output_shape of another number of axes");
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t total = window.strides[axis] * (sizes[axis] - 1) + extra[axis] +
                          (window.kernel[axis] - 1) * window.dilations[axis] + 1 - wanted[axis];
    const int64_t half = total / 2 - (total < 0 && total % 2 != 0 ? 1 : 0);  // rounded down
    result.before[axis] = automatic == "SAME_UPPER" ? half : total - half;
    result.after[axis] = total - result.before[axis];
  }
  return result;
}

std::vector<ValueId> convert_conv_transpose(NodeContext& node) {
  Graph& graph = node.graph();
  const Window window = find_window(node, node.shape(0), node.shape(1));
  const std::vector<int64_t> sizes = spatial(node.shape(0));
  const auto extra = node.integers("output_padding", std::vector<int64_t>(sizes.size(), 0));
  if (extra.size() != sizes.size()) node.fail("has an output_padding of another number of axes");
  require_sizes(node, "an output_padding", extra);
  const Padding padding = find_transposed_padding(node, window, sizes, extra);
  const ValueId x = node.value(0), weight = node.value(1);
  ValueId whole;
  if (node.rank(0) == 4) {
    // As weft's own op has it, where it can: padding is the same on both sides.
    bool is_own = padding.before == padding.after;
    for (size_t axis = 0; axis < 2; ++axis)
      is_own = is_own && padding.before[axis] >= 0 && extra[axis] < window.strides[axis] &&
               padding.before[axis] <= (window.kernel[axis] - 1) * window.dilations[axis];
    if (is_own) {
      ops::ConvTranspose2dOptions options;
      options.stride = {window.strides[0], window.strides[1]};
      options.dilation = {window.dilations[0], window.dilations[1]};
      options.padding = {padding.before[0], padding.before[1]};
      options.output_padding = {extra[0], extra[1]};
      options.groups = window.groups;
      return {with_bias(node, ops::conv_transpose2d(graph, x, weight, options, node.hint()))};
    }
    whole = spread_images(graph, x, weight, window);
  } else if (node.rank(0) == 3) {
    const ValueId image = ops::reshape(graph, x, with_row(node.shape(0)));
    const ValueId filters = ops::reshape(graph, weight, with_row(node.shape(1)));
    Window row = window;
    row.padding = {std::vector<int64_t>(1, 0), std::vector<int64_t>(1, 0)};
    whole = without_row(graph, spread_images(graph, image, filters, row_window(row)), "");
  } else {
    Window volume = window;
    volume.padding = {std::vector<int64_t>(3, 0), std::vector<int64_t>(3, 0)};
    whole = spread_volumes(graph, x, weight, volume);
  }
  std::vector<int64_t> before, after;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    before.push_back(-padding.before[axis]);
    after.push_back(extra[axis] - padding.after[axis]);
  }
  return {with_bias(node, padded(graph, whole, before, after))};
}

/// A filter per channel over a row and the end of the row before it, which is the state.
std::vector<ValueId> convert_causal_conv(NodeContext& node) {
  Graph& graph = node.graph();
  const Shape shape = node.shape(0), weight = node.shape(1);
  if (shape.rank() != 3 || weight.rank() != 3 || weight[0] != shape[1] || weight[1] != 1 || weight[2] < 1)
    node.fail(
        fmt::format("wants rows [N,C,L] and weights [C,1,K], got {} and {}", to_string(shape), to_string(weight)));
  const std::string activation = node.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    node.fail("has the unknown activation '" + activation + "'");
  const int64_t past = weight[2] - 1, length = shape[2] + past;
  ValueId x = node.value(0);
  if (node.has(3)) {
    const Shape state{shape[0], shape[1], past};
    if (node.shape(3) != state)
      node.fail(fmt::format("wants a state {}, got {}", to_string(state), to_string(node.shape(3))));
    if (past > 0) x = ops::concat(graph, {node.value(3), x}, 2);
  } else if (past > 0) {
    x = ops::pad(graph, x, {0, 0, past}, {0, 0, 0});
  }
  const ValueId y = computed_in_f32(graph, x, [&](ValueId rows) {
    const auto alike = [&](ValueId value) {
      const DType dtype = graph.type(rows).dtype;
      return graph.type(value).dtype == dtype ? value : ops::cast(graph, value, dtype);
    };
    ops::Conv2dOptions options;
    options.groups = shape[1];
    const ValueId image = ops::reshape(graph, rows, {shape[0], shape[1], 1, length});
    const ValueId filter = ops::reshape(graph, alike(node.value(1)), {shape[1], 1, 1, weight[2]});
    ValueId sum = without_row(graph, ops::conv2d(graph, image, filter, options), node.hint());
    if (node.has(2)) sum = ops::add(graph, sum, ops::reshape(graph, alike(node.value(2)), {1, shape[1], 1}));
    return activation == "none" ? sum : ops::silu(graph, sum);
  });
  return {y, ops::slice(graph, x, {0, 0, length - past}, {shape[0], shape[1], length})};
}

}  // namespace

ValueId convolve(NodeContext& node, ValueId x, ValueId weight, bool is_exact) {
  Graph& graph = node.graph();
  const Shape shape = graph.shape(x), weight_shape = graph.shape(weight);
  Window window = find_window(node, shape, weight_shape);
  window.padding = find_padding(node, spatial(shape), window.kernel, window.strides, window.dilations);
  window.is_exact = is_exact;
  const std::string name = node.hint();
  if (shape.rank() == 3) {
    const ValueId image = ops::reshape(graph, x, with_row(shape));
    const ValueId filters = ops::reshape(graph, weight, with_row(weight_shape));
    return without_row(graph, convolve_images(graph, image, filters, row_window(window), ""), name);
  }
  if (shape.rank() == 5) return convolve_volumes(node, x, weight, window);
  return convolve_images(graph, x, weight, window, name);
}

std::optional<ops::IntegerConv2dOptions> integer_window(NodeContext& node, const Shape& x, const Shape& weight) {
  Window window = find_window(node, x, weight);
  window.padding = find_padding(node, spatial(x), window.kernel, window.strides, window.dilations);
  if (x.rank() == 3) window = row_window(window);
  if (window.kernel.size() != 2) return std::nullopt;
  const Padding& padding = window.padding;
  for (const auto* sides : {&padding.before, &padding.after})
    for (const int64_t size : *sides)
      if (size < 0) return std::nullopt;
  ops::IntegerConv2dOptions options;
  options.stride = {window.strides[0], window.strides[1]};
  options.dilation = {window.dilations[0], window.dilations[1]};
  options.padding = {padding.before[0], padding.before[1], padding.after[0], padding.after[1]};
  options.groups = window.groups;
  return options;
}

void add_convolutions(OperatorTable& table) {
  const std::string family = "convolution";
  table.add(family, "Conv", convert_conv);
  table.add(family, "ConvTranspose", convert_conv_transpose);
  table.add(family, "CausalConvWithState", convert_causal_conv);
}

}  // namespace weft::onnx
