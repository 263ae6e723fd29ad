// Other sizes of images and of anything else: Resize and Upsample. Where weft's own op does not have the rule, each
// axis is multiplied by a matrix of the weights that the rule gives its elements.
#include <algorithm>
#include <cmath>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

struct Rule {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool excludes_outside = false, antialias = false;
};

struct Axis {
  int64_t in = 1, out = 1;
  double scale = 1;
  double exact_out = 1;  // before it is rounded down
  double roi_start = 0, roi_end = 1;
};

/// Where the centre of element `x` of the result lies among those of the operand.
double source_of(const Rule& rule, const Axis& axis, int64_t x) {
  const auto position = static_cast<double>(x), in = static_cast<double>(axis.in), out = axis.exact_out;
  const std::string& mode = rule.coordinates;
  if (mode == "asymmetric") return position / axis.scale;
  if (mode == "align_corners") return out == 1 ? 0 : position * (in - 1) / (out - 1);
  if (mode == "pytorch_half_pixel") return axis.out > 1 ? (position + 0.5) / axis.scale - 0.5 : 0;
  if (mode == "tf_half_pixel_for_nn") return (position + 0.5) / axis.scale;
  if (mode == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(axis.out) / (axis.scale * in);
    return in / 2 * (1 - adjustment) + (position + 0.5) / axis.scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    if (axis.out == 1) return 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
    return axis.roi_start * (in - 1) + position * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1);
  }
  return (position + 0.5) / axis.scale - 0.5;  // half_pixel
}

int64_t nearest_of(const Rule& rule, double source) {
  if (rule.nearest == "floor") return static_cast<int64_t>(std::floor(source));
  if (rule.nearest == "ceil") return static_cast<int64_t>(std::ceil(source));
  if (rule.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(source + 0.5));
  return static_cast<int64_t>(std::ceil(source - 0.5));  // round_prefer_floor
}

double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

/// [out,in]: the weights of the operand's elements.
Tensor weights_of(const Rule& rule, const Axis& axis) {
  Tensor result(DType::f32, Shape{axis.out, axis.in});
  std::vector<double> row(static_cast<size_t>(axis.in));
  for (int64_t x = 0; x < axis.out; ++x) {
    std::fill(row.begin(), row.end(), 0.0);
    const double source = source_of(rule, axis, x);
    const bool is_outside =
        rule.coordinates == "tf_crop_and_resize" && (source < 0 || source > static_cast<double>(axis.in - 1));
    if (!is_outside) {
      const bool is_linear = rule.mode == "linear";
      // Smaller images with antialiasing: the filter is as wide as the elements that become one.
      const double stretch = rule.antialias && axis.scale < 1 ? axis.scale : 1;
      const double reach = (is_linear ? 1 : 2) / stretch;
      const auto first = static_cast<int64_t>(std::floor(source - reach)) + 1;
      const auto last = static_cast<int64_t>(std::ceil(source + reach)) - 1;
      const bool excludes = rule.excludes_outside;
      double sum = 0;
      for (int64_t at = std::min(first, static_cast<int64_t>(std::floor(source)));
           at <= std::max(last, static_cast<int64_t>(std::floor(source))); ++at) {
        const double distance = (static_cast<double>(at) - source) * stretch;
        const double weight = is_linear ? std::max(0.0, 1 - std::abs(distance)) : cubic_weight(distance, rule.cubic);
        if (excludes && (at < 0 || at >= axis.in)) continue;
        row[static_cast<size_t>(std::clamp<int64_t>(at, 0, axis.in - 1))] += weight;
        sum += weight;
      }
      if ((excludes || stretch != 1) && sum != 0)
        for (double& weight : row) weight /= sum;
    }
    for (int64_t at = 0; at < axis.in; ++at)
      result.data_as<float>()[x * axis.in + at] = static_cast<float>(row[static_cast<size_t>(at)]);
  }
  return result;
}

ValueId along(Graph& graph, ValueId x, int64_t axis, const Tensor& weights) {
  const int rank = graph.shape(x).rank();
  std::vector<int64_t> order = all_axes(rank);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  const bool moves = axis != rank - 1;
  if (moves) x = ops::transpose(graph, x, order);
  ValueId matrix = ops::constant_tensor(graph, Constant(weights));
  if (graph.type(x).dtype != DType::f32) matrix = ops::cast(graph, matrix, graph.type(x).dtype);
  const ValueId flat = flattened(graph, x, rank - 1);
  std::vector<int64_t> shape = graph.shape(x).dims();
  shape.back() = weights.shape()[0];
  x = ops::reshape(graph, ops::matmul(graph, flat, matrix, false, true), shape);
  return moves ? ops::transpose(graph, x, order) : x;
}

/// The size that an axis gets; Error(usage) where no image could have it.
int64_t scaled_size(const NodeAttributes& node, double size) {
  constexpr double kMost = 0x1p28;
  if (!(size >= 1 && size <= kMost)) node.fail(fmt::format("gives an axis the size {:.6g}", size));
  return static_cast<int64_t>(std::floor(size));
}

std::vector<ValueId> resized(NodeContext& node, const Rule& rule, const std::vector<Axis>& axes) {
  Graph& graph = node.graph();
  for (const Axis& axis : axes)
    if (rule.mode != "nearest" && axis.in != axis.out) require_small(node, "weights", {axis.in, axis.out});
  ValueId x = node.value(0);
  if (rule.mode == "nearest") {
    for (size_t index = 0; index < axes.size(); ++index) {
      const Axis& axis = axes[index];
      if (axis.in == axis.out && axis.scale == 1) continue;
      std::vector<int64_t> indices;
      for (int64_t at = 0; at < axis.out; ++at)
        indices.push_back(std::clamp<int64_t>(nearest_of(rule, source_of(rule, axis, at)), 0, axis.in - 1));
      x = ops::take(graph, x, ops::constant_integers(graph, indices), static_cast<int64_t>(index), node.hint());
    }
    return {x};
  }
  if (rule.mode != "linear" && rule.mode != "cubic") node.fail("has the unknown mode '" + rule.mode + "'");
  const bool is_image = axes.size() == 4 && axes[0].in == axes[0].out && axes[1].in == axes[1].out;
  const auto is_whole = [](const Axis& axis) {
    return std::abs(axis.scale * static_cast<double>(axis.in) - static_cast<double>(axis.out)) < 1e-6;
  };
  if (is_image && rule.mode == "linear" && rule.coordinates == "half_pixel" && !rule.antialias &&
      !rule.excludes_outside && is_whole(axes[2]) && is_whole(axes[3]) && is_compute_dtype(node.dtype(0)))
    return {ops::resize(graph, x, {axes[2].out, axes[3].out}, "bilinear", node.hint())};
  const DType dtype = node.dtype(0);
  if (!is_compute_dtype(dtype)) x = ops::cast(graph, x, DType::f32);
  ValueId is_outside{};
  for (size_t index = 0; index < axes.size(); ++index) {
    const Axis& axis = axes[index];
    if (axis.in == axis.out && axis.scale == 1 && rule.coordinates != "tf_crop_and_resize") continue;
    x = along(graph, x, static_cast<int64_t>(index), weights_of(rule, axis));
    if (rule.coordinates != "tf_crop_and_resize") continue;
    Tensor outside(DType::boolean, Shape{axis.out});
    for (int64_t at = 0; at < axis.out; ++at) {
      const double source = source_of(rule, axis, at);
      outside.data_as<uint8_t>()[at] = source < 0 || source > static_cast<double>(axis.in - 1);
    }
    std::vector<int64_t> shape(axes.size(), 1);
    shape[index] = axis.out;
    const ValueId mask = ops::reshape(graph, ops::constant_tensor(graph, Constant(outside)), shape);
    is_outside = is_outside.valid() ? ops::logical_or(graph, is_outside, mask) : mask;
  }
  if (is_outside.valid()) x = ops::where(graph, is_outside, scalar_like(graph, x, rule.extrapolation), x, node.hint());
  if (is_compute_dtype(dtype)) return {x};
  if (is_integer(dtype)) x = ops::floor(graph, ops::add_scalar(graph, x, 0.5));
  return {ops::cast(graph, x, dtype, node.hint())};
}

std::vector<ValueId> convert_resize(NodeContext& node) {
  const bool is_first = node.opset() < 11;  // Resize-10: scales alone
  Rule rule;
  rule.mode = node.text("mode", "nearest");
  if (rule.mode == "bilinear") rule.mode = "linear";
  rule.coordinates = node.text("coordinate_transformation_mode", is_first ? "asymmetric" : "half_pixel");
  rule.nearest = node.text("nearest_mode", is_first ? "floor" : "round_prefer_floor");
  rule.cubic = node.real("cubic_coeff_a", -0.75);
  rule.extrapolation = node.real("extrapolation_value", 0);
  rule.excludes_outside = node.integer("exclude_outside", 0) != 0;
  rule.antialias = node.integer("antialias", 0) != 0;
  const int rank = node.rank(0);
  const int scales_at = is_first ? 1 : 2;
  const bool has_scales = node.has(scales_at) && node.shape(scales_at).elements() > 0;
  const bool has_sizes = !is_first && node.has(3) && node.shape(3).elements() > 0;
  if (has_scales == has_sizes) node.fail("wants either scales or sizes");
  const auto which = node.has_attribute("axes") ? resolve_axes(node, node.integers("axes"), rank) : all_axes(rank);
  std::vector<Axis> axes(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis)
    axes[static_cast<size_t>(axis)].in = axes[static_cast<size_t>(axis)].out = node.shape(0)[axis];
  const auto scales = has_scales ? node.known_reals(scales_at) : std::vector<double>{};
  auto sizes = has_sizes ? node.known_integers(3) : std::vector<int64_t>{};
  if ((has_scales ? scales.size() : sizes.size()) != which.size()) node.fail("wants a scale or a size per axis");
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  if (has_sizes && policy != "stretch")
    for (size_t index = 0; index < which.size(); ++index) {
      const double scale =
          static_cast<double>(sizes[index]) / static_cast<double>(axes[static_cast<size_t>(which[index])].in);
      common = index == 0 ? scale : policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
    }
  for (size_t index = 0; index < which.size(); ++index) {
    Axis& axis = axes[static_cast<size_t>(which[index])];
    if (axis.in == 0) node.fail("has an empty axis");
    if (has_scales) {
      axis.scale = scales[index];
      axis.out = scaled_size(node, static_cast<double>(axis.in) * axis.scale);
    } else if (common > 0) {
      axis.scale = common;
      axis.out = scaled_size(node, static_cast<double>(axis.in) * common + 0.5);
    } else {
      axis.out = scaled_size(node, static_cast<double>(sizes[index]));
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    }
    axis.exact_out = has_scales ? static_cast<double>(axis.in) * axis.scale : static_cast<double>(axis.out);
  }
  if (rule.coordinates == "tf_crop_and_resize") {
    const auto roi = node.known_reals(1);
    if (roi.size() != 2 * which.size()) node.fail("wants a region with two numbers per axis");
    for (const double edge : roi)
      if (!(std::abs(edge) < 0x1p20)) node.fail(fmt::format("has a region from or to {}", edge));
    for (size_t index = 0; index < which.size(); ++index) {
      axes[static_cast<size_t>(which[index])].roi_start = roi[index];
      axes[static_cast<size_t>(which[index])].roi_end = roi[index + which.size()];
    }
  }
  return resized(node, rule, axes);
}

/// Of versions 7 and 9: scales as an attribute or an operand.
std::vector<ValueId> convert_upsample(NodeContext& node) {
  Rule rule{node.text("mode", "nearest"), "asymmetric", "floor"};
  if (rule.mode == "bilinear") rule.mode = "linear";
  const auto scales = node.opset() >= 9 ? node.known_reals(1) : node.reals("scales");
  if (static_cast<int>(scales.size()) != node.rank(0)) node.fail("wants a scale per axis");
  std::vector<Axis> axes;
  for (int axis = 0; axis < node.rank(0); ++axis) {
    const double scale = scales[static_cast<size_t>(axis)];
    const int64_t size = node.shape(0)[axis];
    axes.push_back({size, scaled_size(node, static_cast<double>(size) * scale), scale});
  }
  return resized(node, rule, axes);
}

/// The places in an image, or a volume, that affine maps give the elements of another: theta [N,2,3] -> [N,H,W,2].
std::vector<ValueId> convert_affine_grid(NodeContext& node) {
  Graph& graph = node.graph();
  const auto size = node.known_integers(1);
  const bool corners = node.integer("align_corners", 0) != 0;
  if (size.size() != 4 && size.size() != 5) node.fail("wants a size of four or five axes");
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  require_small(node, "a grid", size);
  std::vector<int64_t> spatial(size.begin() + 2, size.end());
  Shape shape(spatial);
  if (!has_bounded_size(shape)) node.fail("has the size " + to_string(shape));
  // Coordinates from -1 to 1, the last axis first, and a 1 behind them.
  Tensor places(DType::f32, Shape{shape.elements(), axes + 1});
  const auto strides = row_major_strides(shape);
  for (int64_t index = 0; index < shape.elements(); ++index) {
    for (int64_t axis = 0; axis < axes; ++axis) {
      const auto along = static_cast<size_t>(axes - 1 - axis);
      const auto at = static_cast<double>(index / strides[along] % spatial[along]),
                 count = static_cast<double>(spatial[along]);
      const double place = corners ? (count > 1 ? 2 * at / (count - 1) - 1 : 0) : (2 * at + 1) / count - 1;
      places.data_as<float>()[index * (axes + 1) + axis] = static_cast<float>(place);
    }
    places.data_as<float>()[index * (axes + 1) + axes] = 1;
  }
  const DType dtype = node.dtype(0);
  ValueId theta = node.value(0);
  if (dtype != DType::f32) theta = ops::cast(graph, theta, DType::f32);
  const ValueId flat = ops::matmul(graph, ops::constant_tensor(graph, Constant(places)), theta, false, true);
  std::vector<int64_t> result = {size[0]};
  result.insert(result.end(), spatial.begin(), spatial.end());
  result.push_back(axes);
  const ValueId grid = ops::reshape(graph, flat, result, node.hint());
  return {dtype == DType::f32 ? grid : ops::cast(graph, grid, dtype)};
}

}  // namespace

void add_resampling(OperatorTable& table) {
  table.add("image", "Resize", convert_resize);
  table.add("image", "Upsample", convert_upsample);
  table.add("image", "AffineGrid", convert_affine_grid);
}

}  // namespace weft::onnx
