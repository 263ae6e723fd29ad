#include "weft/onnx/operators/sampling.h"

#include <algorithm>
#include <map>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

/// 1 where it holds and 0 elsewhere: comparisons of reals give reals.
ValueId within(Graph& graph, ValueId x, double low, double high) {
  return ops::multiply(graph, ops::greater_equal(graph, x, scalar_like(graph, x, low)),
                       ops::less_equal(graph, x, scalar_like(graph, x, high)));
}

/// Between these; NaN becomes `low`.
ValueId bounded(Graph& graph, ValueId x, double low, double high) {
  const ValueId least = scalar_like(graph, x, low);
  const ValueId is_there = ops::greater_equal(graph, x, least);
  return ops::minimum(graph, ops::where(graph, as_boolean(graph, is_there), x, least), scalar_like(graph, x, high));
}

/// Turned back at both ends, as often as it takes.
ValueId reflected(Graph& graph, ValueId x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return ops::add_scalar(graph, ops::multiply_scalar(graph, x, 0), low);
  const ValueId distance = ops::absolute(graph, ops::add_scalar(graph, x, -low));
  const ValueId turns = ops::floor(graph, ops::multiply_scalar(graph, distance, 1 / range));
  const ValueId rest = ops::subtract(graph, distance, ops::multiply_scalar(graph, turns, range));
  const ValueId half = ops::floor(graph, ops::multiply_scalar(graph, turns, 0.5));
  const ValueId is_odd = ops::subtract(graph, turns, ops::multiply_scalar(graph, half, 2));
  const ValueId forth = ops::add_scalar(graph, rest, low);
  const ValueId back = ops::add_scalar(graph, ops::negate(graph, rest), high);
  return ops::where(graph, as_boolean(graph, ops::greater(graph, is_odd, scalar_like(graph, is_odd, 0.5))), back,
                    forth);
}

/// Keys 1981: the weights of the elements at -1, 0, 1, 2 of a sample between 0 and 1.
ValueId cubic_weight(Graph& graph, ValueId fraction, int neighbour) {
  constexpr double kA = -0.75;
  const auto polynomial = [&](ValueId x, double c3, double c2, double c1, double c0) {
    ValueId sum = ops::add_scalar(graph, ops::multiply_scalar(graph, x, c3), c2);
    sum = ops::add_scalar(graph, ops::multiply(graph, sum, x), c1);
    return ops::add_scalar(graph, ops::multiply(graph, sum, x), c0);
  };
  const bool is_outer = neighbour == -1 || neighbour == 2;
  // Its distance from the sample: fraction + 1, fraction, 1 - fraction, 2 - fraction.
  const ValueId distance = neighbour <= 0
                               ? ops::add_scalar(graph, fraction, static_cast<double>(-neighbour))
                               : ops::add_scalar(graph, ops::negate(graph, fraction), static_cast<double>(neighbour));
  if (is_outer) return polynomial(distance, kA, -5 * kA, 8 * kA, -4 * kA);
  return polynomial(distance, kA + 2, -(kA + 3), 0, 1);
}

}  // namespace

AxisNeighbours find_neighbours(Graph& graph, ValueId positions, int64_t size, Between between, Beyond beyond,
                               bool mirror_at_centres) {
  const auto last = static_cast<double>(size - 1);
  const double low = mirror_at_centres ? 0 : -0.5, high = mirror_at_centres ? last : last + 0.5;
  // Farther outside than this makes no difference, and places stay exact numbers.
  constexpr double kFar = 0x1p20;
  ValueId x =
      bounded(graph, positions, beyond == Beyond::zeros ? -4 : -kFar, beyond == Beyond::zeros ? last + 4 : kFar);
  if (between == Between::nearest) x = ops::round(graph, x);
  if (beyond == Beyond::reflection) x = reflected(graph, x, low, high);
  if (beyond == Beyond::border) {
    const ValueId is_between = as_boolean(graph, within(graph, x, low, high));
    x = ops::where(graph, is_between, x, ops::clip(graph, x, 0, last));
  }
  const ValueId base = between == Between::nearest ? ops::round(graph, x) : ops::floor(graph, x);
  const ValueId fraction = ops::subtract(graph, x, base);
  AxisNeighbours result;
  const int first = between == Between::cubic ? -1 : 0;
  const int end = between == Between::cubic ? 3 : between == Between::linear ? 2 : 1;
  for (int neighbour = first; neighbour < end; ++neighbour) {
    ValueId place = neighbour == 0 ? base : ops::add_scalar(graph, base, neighbour);
    ValueId weight{};
    if (between == Between::cubic) weight = cubic_weight(graph, fraction, neighbour);
    if (between == Between::linear)
      weight = neighbour == 1 ? fraction : ops::add_scalar(graph, ops::negate(graph, fraction), 1);
    if (between == Between::nearest) weight = ops::broadcast_to(graph, scalar_like(graph, x, 1), graph.shape(x));
    if (beyond == Beyond::zeros) weight = ops::multiply(graph, weight, within(graph, place, 0, last));
    if (beyond == Beyond::reflection) place = ops::round(graph, reflected(graph, place, low, high));
    result.places.push_back(ops::clip(graph, place, 0, last));
    result.weights.push_back(weight);
  }
  return result;
}

AxisNeighbours linear_neighbours(Graph& graph, ValueId positions, int64_t size) {
  return find_neighbours(graph, positions, size, Between::linear, Beyond::border, true);
}

void for_each_neighbour(Graph& graph, const std::vector<int64_t>& sizes, const std::vector<AxisNeighbours>& axes,
                        const std::function<void(ValueId places, ValueId weights)>& function) {
  std::vector<size_t> at(axes.size(), 0);
  for (bool goes_on = true; goes_on;) {
    ValueId places{}, weights{};
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const ValueId place = axes[axis].places[at[axis]], weight = axes[axis].weights[at[axis]];
      if (axis == 0) {
        places = ops::cast(graph, place, DType::i64);
        weights = weight;
        continue;
      }
      // i64: an image may have more elements than f32 can number.
      const ValueId size = ops::constant(graph, DType::i64, Shape{}, sizes[axis]);
      places = ops::add(graph, ops::multiply(graph, places, size), ops::cast(graph, place, DType::i64));
      weights = ops::multiply(graph, weights, weight);
    }
    function(places, weights);
    goes_on = false;
    for (size_t axis = axes.size(); axis-- > 0;) {
      if (++at[axis] < axes[axis].places.size()) {
        goes_on = true;
        break;
      }
      at[axis] = 0;
    }
  }
}

ValueId sample(Graph& graph, ValueId x, const std::vector<int64_t>& sizes, const std::vector<AxisNeighbours>& axes) {
  ValueId sum{};
  for_each_neighbour(graph, sizes, axes, [&](ValueId places, ValueId weights) {
    const int64_t rows = graph.shape(places)[0], samples = graph.shape(places)[1];
    const ValueId found = ops::gather_nd(graph, x, ops::reshape(graph, places, {rows, samples, 1}), 1);
    const ValueId part = ops::multiply(graph, found, ops::reshape(graph, weights, {rows, samples, 1}));
    sum = sum.valid() ? ops::add(graph, sum, part) : part;
  });
  return sum;
}

namespace {

/// [N,C,..] -> [N,elements,C]
ValueId channels_last(Graph& graph, ValueId x) {
  const Shape shape = graph.shape(x);
  const int64_t elements = shape[0] * shape[1] == 0 ? 0 : shape.elements() / (shape[0] * shape[1]);
  return ops::transpose(graph, ops::reshape(graph, x, {shape[0], shape[1], elements}), {0, 2, 1});
}

/// [N,samples,C] -> [N,C,..]
ValueId channels_first(Graph& graph, ValueId x, const std::vector<int64_t>& sizes, const std::string& name) {
  const Shape shape = graph.shape(x);
  std::vector<int64_t> result = {shape[0], shape[2]};
  result.insert(result.end(), sizes.begin(), sizes.end());
  return ops::reshape(graph, ops::transpose(graph, x, {0, 2, 1}), result, name);
}

std::vector<int64_t> spatial_sizes(const Shape& shape) { return {shape.dims().begin() + 2, shape.dims().end()}; }

/// Grids hold coordinates from -1 to 1, those of the last axis first.
std::vector<ValueId> convert_grid_sample(NodeContext& node) {
  Graph& graph = node.graph();
  const Shape shape = node.shape(0), grid_shape = node.shape(1);
  const int rank = shape.rank(), axes = rank - 2;
  if (rank < 3 || rank > 5 || grid_shape.rank() != rank || grid_shape[rank - 1] != axes || grid_shape[0] != shape[0])
    node.fail(
        fmt::format("wants x [N,C,H,W] and a grid [N,H_out,W_out,2], or the same of one or three axes; got {} and {}",
                    to_string(shape), to_string(grid_shape)));
  const std::string mode = node.text("mode", "linear"), padding = node.text("padding_mode", "zeros");
  const std::map<std::string, Between> modes = {{"nearest", Between::nearest},
                                                {"linear", Between::linear},
                                                {"bilinear", Between::linear},
                                                {"cubic", Between::cubic},
                                                {"bicubic", Between::cubic}};
  const std::map<std::string, Beyond> paddings = {
      {"zeros", Beyond::zeros}, {"border", Beyond::border}, {"reflection", Beyond::reflection}};
  if (!modes.contains(mode)) node.fail("has the unknown mode '" + mode + "'");
  if (!paddings.contains(padding)) node.fail("has the unknown padding_mode '" + padding + "'");
  const bool corners = node.integer("align_corners", 0) != 0;
  const auto sizes = spatial_sizes(shape);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) node.fail("samples an image without elements");
  const std::vector<int64_t> out(grid_shape.begin() + 1, grid_shape.end() - 1);
  int64_t samples = 1;
  for (const int64_t size : out) samples *= size;
  ValueId grid = node.value(1);
  if (graph.type(grid).dtype != DType::f32) grid = ops::cast(graph, grid, DType::f32);
  grid = ops::reshape(graph, grid, {shape[0], samples, axes});
  std::vector<AxisNeighbours> neighbours;
  for (int axis = 0; axis < axes; ++axis) {
    const int64_t column = axes - 1 - axis;
    const auto size = static_cast<double>(sizes[static_cast<size_t>(axis)]);
    ValueId x = ops::slice(graph, grid, {0, 0, column}, {shape[0], samples, column + 1});
    x = ops::add_scalar(graph, ops::reshape(graph, x, {shape[0], samples}), 1);
    x = corners ? ops::multiply_scalar(graph, x, (size - 1) / 2)
                : ops::multiply_scalar(graph, ops::add_scalar(graph, ops::multiply_scalar(graph, x, size), -1), 0.5);
    neighbours.push_back(
        find_neighbours(graph, x, sizes[static_cast<size_t>(axis)], modes.at(mode), paddings.at(padding), corners));
  }
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    return channels_first(graph, sample(graph, channels_last(graph, x), sizes, neighbours), out, node.hint());
  })};
}

/// What DeformConv says of its kernel over images.
struct DeformedWindow {
  int64_t kernel_h, kernel_w, out_h, out_w, groups, offset_groups;
  std::vector<int64_t> strides, pads, dilations;
  int64_t taps() const { return kernel_h * kernel_w; }
  int64_t places() const { return out_h * out_w; }
};

DeformedWindow find_deformed_window(NodeContext& node) {
  const Shape x = node.shape(0), weight = node.shape(1), offset = node.shape(2);
  if (x.rank() != 4 || weight.rank() != 4 || offset.rank() != 4)
    node.fail("is of images alone: wants x, weights and offsets of four dimensions, got " + to_string(x) + ", " +
              to_string(weight) + " and " + to_string(offset));
  DeformedWindow window{weight[2],
                        weight[3],
                        offset[2],
                        offset[3],
                        node.integer("group", 1),
                        node.integer("offset_group", 1),
                        node.integers("strides", {1, 1}),
                        node.integers("pads", {0, 0, 0, 0}),
                        node.integers("dilations", {1, 1})};
  if (window.strides.size() != 2 || window.dilations.size() != 2 || window.pads.size() != 4)
    node.fail("wants two strides, two dilations and four pads");
  for (const auto& [what, numbers] :
       {std::pair("strides", &window.strides), {"dilations", &window.dilations}, {"pads", &window.pads}})
    require_sizes(node, what, *numbers);
  if (window.groups < 1 || window.offset_groups < 1 || x[1] % window.offset_groups != 0 ||
      weight[1] * window.groups != x[1])
    node.fail(fmt::format("cannot cut {} channels into {} groups, or {} groups of offsets", x[1], window.groups,
                          window.offset_groups));
  for (int axis = 0; axis < 2; ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (window.strides[at] < 1 || window.dilations[at] < 1) node.fail("wants strides and dilations of at least 1");
    const int64_t room =
        x[2 + axis] + window.pads[at] + window.pads[at + 2] - (window.dilations[at] * (weight[2 + axis] - 1) + 1);
    if (room < 0 || room / window.strides[at] + 1 != offset[2 + axis])
      node.fail(fmt::format("has offsets {} that do not fit its window over {}", to_string(offset), to_string(x)));
  }
  if (offset[0] != x[0] || offset[1] != window.offset_groups * window.taps() * 2)
    node.fail(fmt::format("wants {} channels of offsets, got {}", window.offset_groups * window.taps() * 2,
                          to_string(offset)));
  require_small(node, "samples", {x[0], x[1], window.taps(), window.places()});
  return window;
}

/// Where the taps of an undeformed kernel lie along an axis: [1, taps * places].
Tensor regular_places(const DeformedWindow& window, bool is_row) {
  Tensor result(DType::f32, Shape{1, window.taps() * window.places()});
  const size_t axis = is_row ? 0 : 1;
  for (int64_t tap = 0; tap < window.taps(); ++tap)
    for (int64_t place = 0; place < window.places(); ++place) {
      const int64_t in_kernel = is_row ? tap / window.kernel_w : tap % window.kernel_w;
      const int64_t in_image = is_row ? place / window.out_w : place % window.out_w;
      result.data_as<float>()[tap * window.places() + place] =
          static_cast<float>(in_image * window.strides[axis] - window.pads[axis] + in_kernel * window.dilations[axis]);
    }
  return result;
}

/// Dai et al. 2017, with the masks of Zhu et al. 2019: samples of each tap, and a convolution of 1x1 over all of them.
std::vector<ValueId> convert_deform_conv(NodeContext& node) {
  Graph& graph = node.graph();
  const DeformedWindow window = find_deformed_window(node);
  const Shape shape = node.shape(0), weight_shape = node.shape(1);
  const int64_t rows = shape[0] * window.offset_groups, taps = window.taps(), places = window.places();
  const int64_t channels = shape[1] / window.offset_groups;
  const auto as_reals = [&](ValueId x) {
    return graph.type(x).dtype == DType::f32 ? x : ops::cast(graph, x, DType::f32);
  };
  const ValueId offset = ops::reshape(graph, as_reals(node.value(2)), {rows, taps, 2, places});
  std::vector<AxisNeighbours> neighbours;
  for (int64_t axis = 0; axis < 2; ++axis) {
    const ValueId moved = ops::slice(graph, offset, {0, 0, axis, 0}, {rows, taps, axis + 1, places});
    const ValueId regular = ops::constant_tensor(graph, Constant(regular_places(window, axis == 0)));
    const ValueId positions = ops::add(graph, ops::reshape(graph, moved, {rows, taps * places}), regular);
    neighbours.push_back(
        find_neighbours(graph, positions, shape[static_cast<int>(axis) + 2], Between::linear, Beyond::zeros, true));
  }
  const DType dtype = node.dtype(0);
  const ValueId images = ops::reshape(graph, as_reals(node.value(0)), {rows, channels, shape[2], shape[3]});
  ValueId samples = sample(graph, channels_last(graph, images), {shape[2], shape[3]}, neighbours);
  if (node.has(4))
    samples = ops::multiply(graph, samples, ops::reshape(graph, as_reals(node.value(4)), {rows, taps * places, 1}));
  samples = ops::transpose(graph, ops::reshape(graph, samples, {rows, taps, places, channels}), {0, 3, 1, 2});
  samples = ops::reshape(graph, samples, {shape[0], shape[1] * taps, window.out_h, window.out_w});
  const ValueId weight = ops::reshape(graph, as_reals(node.value(1)), {weight_shape[0], weight_shape[1] * taps, 1, 1});
  ops::Conv2dOptions options;
  options.groups = window.groups;
  ValueId result = ops::conv2d(graph, samples, weight, options, node.hint());
  if (node.has(3))
    result = ops::add(graph, result, ops::reshape(graph, as_reals(node.value(3)), {1, weight_shape[0], 1, 1}));
  return {dtype == DType::f32 ? result : ops::cast(graph, result, dtype)};
}

}  // namespace

void add_sampling(OperatorTable& table) {
  table.add("image", "GridSample", convert_grid_sample);
  table.add("convolution", "DeformConv", convert_deform_conv);
}

}  // namespace weft::onnx
