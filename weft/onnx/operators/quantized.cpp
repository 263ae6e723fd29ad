// Quantized numbers and what computes with them. Numbers of 8 bits become ops on integers (ops/requantization.h), which
// are exact. What those do not take is composed: conversions of other types in f32, products with a zero point per row
// in i32, convolutions over three axes of parts whose sums no f32 rounds.
#include <algorithm>
#include <array>
#include <optional>

#include "weft/onnx/operators/convolve.h"
#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

ValueId as_type(Graph& graph, ValueId x, DType dtype) {
  return graph.type(x).dtype == dtype ? x : ops::cast(graph, x, dtype);
}

double lowest_of(DType dtype) {
  return is_signed(dtype) ? -static_cast<double>(int64_t{1} << (bits_of(dtype) - 1)) : 0;
}
double highest_of(DType dtype) {
  return static_cast<double>((int64_t{1} << (bits_of(dtype) - (is_signed(dtype) ? 1 : 0))) - 1);
}

/// A factor per tensor, per index of an axis, or per block of one, in the shape that the operand broadcasts with.
ValueId spread(NodeContext& node, ValueId factor, const Shape& shape) {
  Graph& graph = node.graph();
  const Shape own = graph.shape(factor);
  if (own.elements() == 1 && own.rank() <= 1) return ops::reshape(graph, factor, std::vector<int64_t>{});
  const int64_t axis = resolve_axis(node, node.integer("axis", 1), shape.rank());
  const auto at = static_cast<int>(axis);
  if (own.rank() == 1) {
    if (own[0] != shape[at]) node.fail(fmt::format("has {} scales for an axis of {}", own[0], shape[at]));
    std::vector<int64_t> wide(static_cast<size_t>(shape.rank()), 1);
    wide[static_cast<size_t>(axis)] = own[0];
    return ops::reshape(graph, factor, wide);
  }
  const int64_t block = node.integer("block_size", 0);
  if (own.rank() != shape.rank() || block < 1)
    node.fail(fmt::format("has scales {} for {}", to_string(own), to_string(shape)));
  std::vector<int64_t> apart = own.dims(), wide, merged = own.dims();
  apart.insert(apart.begin() + axis + 1, 1);
  wide = apart;
  wide[static_cast<size_t>(axis) + 1] = block;
  merged[static_cast<size_t>(axis)] *= block;
  ValueId result = ops::broadcast_to(graph, ops::reshape(graph, factor, apart), Shape(wide));
  result = ops::reshape(graph, result, merged);
  if (merged[static_cast<size_t>(axis)] < shape[at]) node.fail("has too few blocks");
  if (merged[static_cast<size_t>(axis)] > shape[at]) {
    std::vector<int64_t> ends = merged;
    ends[static_cast<size_t>(axis)] = shape[at];
    result = ops::slice(graph, result, std::vector<int64_t>(merged.size(), 0), ends);
  }
  return result;
}

/// Half to even, at the limits of the type: `x` are reals that count steps.
ValueId as_steps(Graph& graph, ValueId x, ValueId zero_point, DType dtype, const std::string& name) {
  ValueId steps = ops::round(graph, x);
  if (zero_point.valid()) steps = ops::add(graph, steps, as_type(graph, zero_point, DType::f32));
  steps = ops::clip(graph, steps, lowest_of(dtype), highest_of(dtype));
  if (is_packed(dtype)) steps = ops::cast(graph, steps, DType::i32);
  return ops::cast(graph, steps, dtype, name);
}

bool is_byte(DType dtype) { return dtype == DType::i8 || dtype == DType::u8; }

/// One number without dimensions, or a vector: what the ops on integers take as scales and zero points; nullopt where
/// the operand is neither.
std::optional<ValueId> as_factor(Graph& graph, ValueId factor) {
  if (graph.shape(factor).elements() == 1) return ops::reshape(graph, factor, std::vector<int64_t>{});
  return graph.shape(factor).rank() == 1 ? std::optional(factor) : std::nullopt;
}

/// Scale and zero point of an operand of a conversion.
struct Factors {
  ValueId scale, zero_point;
};

/// nullopt where the conversion is none of an op on integers, or is to be trained through.
std::optional<Factors> find_factors(NodeContext& node, DType dtype) {
  Graph& graph = node.graph();
  if (node.is_training() || node.dtype(1) != DType::f32) return std::nullopt;
  if (node.has(2) && node.dtype(2) != dtype) return std::nullopt;
  const auto scale = as_factor(graph, node.value(1));
  if (!scale || node.integer("block_size", 0) > 0) return std::nullopt;
  if (!node.has(2)) return Factors{*scale, ops::constant(graph, dtype, graph.shape(*scale), int64_t{0})};
  const auto zero_point = as_factor(graph, node.value(2));
  if (!zero_point || graph.shape(*zero_point) != graph.shape(*scale)) return std::nullopt;
  return Factors{*scale, *zero_point};
}

std::vector<ValueId> convert_quantize(NodeContext& node) {
  Graph& graph = node.graph();
  const Shape shape = node.shape(0);
  DType dtype = node.has(2) ? node.dtype(2) : node.dtype_of("output_dtype", DType::u8);
  if (node.has_attribute("output_dtype") && node.integer("output_dtype") == 0)
    dtype = node.has(2) ? node.dtype(2) : DType::u8;
  if (!is_integer(dtype)) node.fail(fmt::format("quantizes to {}, which weft does not", name_of(dtype)));
  if (node.dtype(0) == DType::f32 && is_byte(dtype))
    if (const auto factors = find_factors(node, dtype))
      return {ops::quantize_linear(graph, node.value(0), factors->scale, factors->zero_point, node.integer("axis", 1),
                                   node.hint())};
  const ValueId x = as_type(graph, node.value(0), DType::f32);
  const ValueId scale = spread(node, as_type(graph, node.value(1), DType::f32), shape);
  const ValueId zero = node.has(2) ? spread(node, as_type(graph, node.value(2), DType::f32), shape) : ValueId{};
  return {as_steps(graph, ops::divide(graph, x, scale), zero, dtype, node.hint())};
}

/// Groups of numbers along an axis with a scale each, as the op on integers takes them; nullopt where they are none.
std::optional<Factors> find_group_factors(NodeContext& node) {
  Graph& graph = node.graph();
  if (node.is_training() || node.dtype(1) != DType::f32) return std::nullopt;
  const Shape shape = node.shape(0), scales = node.shape(1);
  const int64_t group = node.integer("block_size", 0);
  if (group < 1 || scales.rank() != shape.rank() || scales.rank() == 0) return std::nullopt;
  std::vector<int64_t> wanted = shape.dims();
  int64_t& size = wanted[static_cast<size_t>(resolve_axis(node, node.integer("axis", 1), shape.rank()))];
  size = size / group + (size % group != 0 ? 1 : 0);
  if (scales != Shape(wanted)) return std::nullopt;
  if (!node.has(2)) return Factors{node.value(1), ops::constant(graph, node.dtype(0), scales, int64_t{0})};
  if (node.dtype(2) != node.dtype(0) || node.shape(2) != scales) return std::nullopt;
  return Factors{node.value(1), node.value(2)};
}

bool is_dequantizable(DType dtype) { return is_byte(dtype) || is_packed(dtype); }

std::vector<ValueId> convert_dequantize(NodeContext& node) {
  Graph& graph = node.graph();
  const Shape shape = node.shape(0);
  const int64_t output = node.integer("output_dtype", 0);
  const bool gives_f32 = output == 0 || node.dtype_of("output_dtype", DType::f32) == DType::f32;
  if (gives_f32 && is_dequantizable(node.dtype(0))) {
    if (const auto factors = find_factors(node, node.dtype(0)))
      return {ops::dequantize_linear(graph, node.value(0), factors->scale, factors->zero_point, node.integer("axis", 1),
                                     node.hint())};
    if (const auto factors = find_group_factors(node))
      return {ops::dequantize_linear(graph, node.value(0), factors->scale, factors->zero_point, node.integer("axis", 1),
                                     node.hint(), node.integer("block_size"))};
  }
  ValueId x = as_type(graph, node.value(0), DType::f32);
  if (node.has(2)) x = ops::subtract(graph, x, spread(node, as_type(graph, node.value(2), DType::f32), shape));
  const DType dtype = node.integer("output_dtype", 0) != 0 ? node.dtype_of("output_dtype", DType::f32) : node.dtype(1);
  const ValueId y =
      ops::multiply(graph, x, spread(node, as_type(graph, node.value(1), DType::f32), shape), node.hint());
  return {as_type(graph, y, dtype)};
}

std::vector<ValueId> convert_dynamic_quantize(NodeContext& node) {
  Graph& graph = node.graph();
  const ValueId x = node.value(0), zero = ops::constant(graph, Shape{}, 0);
  const ValueId low = ops::minimum(graph, ops::reduce_min(graph, x), zero);
  const ValueId high = ops::maximum(graph, ops::reduce_max(graph, x), zero);
  const ValueId scale = ops::divide(graph, ops::subtract(graph, high, low), ops::constant(graph, Shape{}, 255));
  const ValueId from = ops::negate(graph, ops::divide(graph, low, scale));
  const ValueId zero_point = as_steps(graph, ops::clip(graph, from, 0, 255), {}, DType::u8, "");
  const ValueId y = as_steps(graph, ops::divide(graph, x, scale), zero_point, DType::u8, node.hint());
  return {y, scale, zero_point};
}

/// The operand less its zero point, as i32. A zero point per row or column has the axis of `axis_from_end`.
ValueId centred(NodeContext& node, int input, int zero_point, int axis_from_end) {
  Graph& graph = node.graph();
  const ValueId x = as_type(graph, node.value(input), DType::i32);
  if (!node.has(zero_point)) return x;
  ValueId zero = as_type(graph, node.value(zero_point), DType::i32);
  if (graph.shape(zero).rank() == 1 && graph.shape(zero)[0] > 1) {
    std::vector<int64_t> shape(static_cast<size_t>(axis_from_end), 1);
    shape[0] = graph.shape(zero)[0];
    zero = ops::reshape(graph, zero, shape);
  } else if (graph.shape(zero).elements() == 1) {
    zero = ops::reshape(graph, zero, std::vector<int64_t>{});
  }
  return ops::subtract(graph, x, zero);
}

/// Zero points of both operands of a product, as its op on integers takes them; nullopt where it does not.
std::optional<std::vector<ValueId>> find_zero_points(NodeContext& node, std::array<int, 2> operands,
                                                     std::array<int, 2> zero_points, int64_t channels) {
  Graph& graph = node.graph();
  std::vector<ValueId> found;
  for (size_t side = 0; side < 2; ++side) {
    const DType dtype = node.dtype(operands[side]);
    if (!is_byte(dtype)) return std::nullopt;
    if (!node.has(zero_points[side])) {
      found.push_back(ops::constant(graph, dtype, Shape{}, int64_t{0}));
      continue;
    }
    const auto zero_point = as_factor(graph, node.value(zero_points[side]));
    if (!zero_point || node.dtype(zero_points[side]) != dtype) return std::nullopt;
    const Shape shape = graph.shape(*zero_point);
    if (shape.rank() > 0 && (side == 0 || shape[0] != channels)) return std::nullopt;
    found.push_back(*zero_point);
  }
  return found;
}

/// The sums of a product of matrices, exact.
ValueId integer_product(NodeContext& node, std::array<int, 2> operands, std::array<int, 2> zero_points,
                        const std::string& name) {
  Graph& graph = node.graph();
  if (node.rank(operands[0]) > 1 && node.rank(operands[1]) > 1) {
    const Shape b = node.shape(operands[1]);
    if (const auto zeros = find_zero_points(node, operands, zero_points, b[b.rank() - 1]))
      return ops::integer_matmul(graph, node.value(operands[0]), node.value(operands[1]), *zeros, name);
  }
  return ops::matmul(graph, centred(node, operands[0], zero_points[0], 2),
                     centred(node, operands[1], zero_points[1], 1), false, false, name);
}

std::vector<ValueId> convert_matmul_integer(NodeContext& node) {
  return {integer_product(node, {0, 1}, {2, 3}, node.hint())};
}

/// x and weight are centred, |x| <= 255 and |weight| <= 255. The weights are cut into parts of so few bits that f32
/// holds every sum exactly.
ValueId exact_convolution(NodeContext& node, ValueId x, ValueId weight, const Shape& weight_shape) {
  Graph& graph = node.graph();
  int64_t terms = 1;
  for (int axis = 1; axis < weight_shape.rank(); ++axis) terms *= weight_shape[axis];
  int64_t bits = 9;
  while (bits > 1 && 255 * ((int64_t{1} << bits) - 1) * terms >= (int64_t{1} << 24)) --bits;
  if (255 * ((int64_t{1} << bits) - 1) * terms >= (int64_t{1} << 24))
    node.fail(fmt::format("sums {} products, more than weft adds exactly", terms));
  const ValueId reals = as_type(graph, x, DType::f32);
  // From 1 to 511, cut into digits; the 256 that were added are taken off again by a convolution with them.
  const auto digit_of = [&](int64_t shift) {
    const ValueId raised = ops::add(graph, weight, ops::constant(graph, DType::i32, Shape{}, int64_t{256}));
    const ValueId shifted = ops::shift_right(graph, raised, ops::constant(graph, DType::i32, Shape{}, shift));
    return ops::bitwise_and(graph, shifted, ops::constant(graph, DType::i32, Shape{}, (int64_t{1} << bits) - 1));
  };
  if (bits == 9) return as_type(graph, convolve(node, reals, as_type(graph, weight, DType::f32), true), DType::i32);
  ValueId sum{};
  const auto add_part = [&](ValueId part, int64_t factor) {
    ValueId convolved = as_type(graph, convolve(node, reals, as_type(graph, part, DType::f32), true), DType::i32);
    convolved = ops::multiply(graph, convolved, ops::constant(graph, DType::i32, Shape{}, factor));
    sum = sum.valid() ? ops::add(graph, sum, convolved) : convolved;
  };
  for (int64_t shift = 0; shift < 9; shift += bits) add_part(digit_of(shift), int64_t{1} << shift);
  add_part(ops::constant(graph, DType::i32, weight_shape, int64_t{1}), -256);
  return sum;
}

/// A zero point or scale per output channel, before the spatial axes.
ValueId per_channel(Graph& graph, ValueId x, int rank, int axis) {
  if (graph.shape(x).elements() == 1) return ops::reshape(graph, x, std::vector<int64_t>{});
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = graph.shape(x).elements();
  return ops::reshape(graph, x, shape);
}

ValueId integer_convolution(NodeContext& node, int x_at, int x_zero, int w_at, int w_zero) {
  Graph& graph = node.graph();
  const int rank = node.rank(x_at);
  const Shape x_shape = node.shape(x_at), w_shape = node.shape(w_at);
  const auto window = integer_window(node, x_shape, w_shape);
  const auto zeros = window ? find_zero_points(node, {x_at, w_at}, {x_zero, w_zero}, w_shape[0]) : std::nullopt;
  if (zeros) {
    const auto as_images = [&](ValueId value, const Shape& shape) {
      return rank == 4 ? value : ops::reshape(graph, value, {shape[0], shape[1], 1, shape[2]});
    };
    const ValueId sum = ops::integer_conv2d(graph, as_images(node.value(x_at), x_shape),
                                            as_images(node.value(w_at), w_shape), *zeros, *window, node.hint());
    return rank == 4 ? sum : squeeze(graph, sum, {2});
  }
  ValueId x = as_type(graph, node.value(x_at), DType::i32), weight = as_type(graph, node.value(w_at), DType::i32);
  if (node.has(x_zero))
    x = ops::subtract(graph, x, per_channel(graph, as_type(graph, node.value(x_zero), DType::i32), rank, 1));
  if (node.has(w_zero))
    weight = ops::subtract(graph, weight, per_channel(graph, as_type(graph, node.value(w_zero), DType::i32), rank, 0));
  return exact_convolution(node, x, weight, node.shape(w_at));
}

std::vector<ValueId> convert_conv_integer(NodeContext& node) { return {integer_convolution(node, 0, 2, 1, 3)}; }

/// sum * (x scale * w scale / y scale), half to even, plus the zero point; `channels`: the axis of the sum that scales
/// of w belong to. A bias may be invalid.
ValueId requantized(NodeContext& node, ValueId sum, ValueId x_scale, ValueId w_scale, ValueId bias, int64_t channels,
                    int y_scale, int y_zero) {
  Graph& graph = node.graph();
  const ValueId whole =
      ops::divide(graph, ops::multiply(graph, x_scale, w_scale),
                  ops::reshape(graph, as_type(graph, node.value(y_scale), DType::f32), std::vector<int64_t>{}));
  const auto factor = graph.shape(whole).elements() == graph.shape(w_scale).elements()
                          ? std::optional(ops::reshape(graph, whole,
                                                       graph.shape(whole).elements() == 1
                                                           ? std::vector<int64_t>{}
                                                           : std::vector<int64_t>{graph.shape(whole).elements()}))
                          : std::nullopt;
  const bool fits =
      factor && graph.shape(x_scale).elements() == 1 && is_byte(node.dtype(y_zero)) &&
      (graph.shape(*factor).rank() == 0 || graph.shape(*factor)[0] == graph.shape(sum)[static_cast<int>(channels)]);
  if (fits) {
    const ValueId zero = ops::reshape(graph, node.value(y_zero), std::vector<int64_t>{});
    return ops::requantize(graph, sum, *factor, zero, bias, channels, node.hint());
  }
  if (bias.valid()) sum = ops::add(graph, sum, per_channel(graph, bias, graph.shape(sum).rank(), 1));
  const ValueId reals = ops::multiply(graph, as_type(graph, sum, DType::f32), whole);
  const ValueId zero = ops::reshape(graph, node.value(y_zero), std::vector<int64_t>{});
  return as_steps(graph, reals, zero, node.dtype(y_zero), node.hint());
}

std::vector<ValueId> convert_qlinear_conv(NodeContext& node) {
  Graph& graph = node.graph();
  const int rank = node.rank(0);
  const ValueId sum = integer_convolution(node, 0, 2, 3, 5);
  const ValueId bias = node.has(8) ? as_type(graph, node.value(8), DType::i32) : ValueId{};
  const ValueId x_scale = ops::reshape(graph, as_type(graph, node.value(1), DType::f32), std::vector<int64_t>{});
  const ValueId w_scale = per_channel(graph, as_type(graph, node.value(4), DType::f32), rank, 1);
  return {requantized(node, sum, x_scale, w_scale, bias, 1, 6, 7)};
}

std::vector<ValueId> convert_qlinear_matmul(NodeContext& node) {
  Graph& graph = node.graph();
  const ValueId sum = integer_product(node, {0, 3}, {2, 5}, "");
  const auto factor = [&](int input, int axis_from_end) {
    const ValueId scale = as_type(graph, node.value(input), DType::f32);
    if (graph.shape(scale).elements() == 1) return ops::reshape(graph, scale, std::vector<int64_t>{});
    std::vector<int64_t> shape(static_cast<size_t>(axis_from_end), 1);
    shape[0] = graph.shape(scale).elements();
    return graph.shape(scale).rank() == 1 ? ops::reshape(graph, scale, shape) : scale;
  };
  return {requantized(node, sum, factor(1, 2), factor(4, 1), {}, graph.shape(sum).rank() - 1, 6, 7)};
}

}  // namespace

void add_quantized(OperatorTable& table) {
  const std::string family = "quantized";
  table.add(family, "QuantizeLinear", convert_quantize);
  table.add(family, "DequantizeLinear", convert_dequantize);
  table.keep_integers("DequantizeLinear");
  table.add(family, "DynamicQuantizeLinear", convert_dynamic_quantize);
  table.add(family, "MatMulInteger", convert_matmul_integer);
  table.add(family, "QLinearMatMul", convert_qlinear_matmul);
  table.add(family, "ConvInteger", convert_conv_integer);
  table.add(family, "QLinearConv", convert_qlinear_conv);
}

}  // namespace weft::onnx
