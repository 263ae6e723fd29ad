// From reals to integers of 8 bits and back, and from sums of i32 to 8 bits: requantization.h has the formulas.
#include "weft/ops/integer/quantized.h"

#include <algorithm>

#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"

namespace weft::ops {

namespace {

constexpr int64_t kLeastByte = -128, kGreatestByte = 255;

AttributeSpec least_attribute() {
  return attribute("low", kLeastByte, "least integer of the result, such as that of a relu");
}
AttributeSpec greatest_attribute() { return attribute("high", kGreatestByte, "greatest integer of the result"); }
AttributeSpec quantized_axis_attribute() {
  return attribute("axis", int64_t{1}, "axis of the channels, where each has a scale of its own");
}

/// The size of the axis that scales may belong to; 1 where the operand has no such axis and the scale is one number.
int64_t quantized_channels(const InferContext& context, int scale) {
  const Shape& shape = context.shape(0);
  if (context.shape(scale).rank() == 0) return 1;
  const int64_t axis = context.attributes.integer("axis"), rank = shape.rank();
  if (axis < -rank || axis >= rank)
    context.fail(
        fmt::format("axis {} is none of {}; give one from {} to {}", axis, context.describe(0), -rank, rank - 1));
  return shape[static_cast<int>(axis < 0 ? axis + rank : axis)];
}

void require_byte_limits(const InferContext& context) {
  const int64_t low = context.attributes.integer("low"), high = context.attributes.integer("high");
  if (low < kLeastByte || high > kGreatestByte || low > high)
    context.fail(fmt::format("low {} and high {} are no range of 8 bits", low, high));
}

std::vector<TensorType> infer_quantize(const InferContext& context) {
  context.require_dtype(0, DType::f32);
  context.require_dtype(1, DType::f32);
  const DType dtype = require_byte(context, 2);
  const int64_t channels = quantized_channels(context, 1);
  require_factor(context, 1, channels);
  if (context.shape(2) != context.shape(1)) context.fail("scale and zero_point must have the same shape");
  return {typed(dtype, context.shape(0))};
}

/// One factor for each group of so many numbers along the axis; the last group may be smaller.
void require_groups(const InferContext& context, int64_t group) {
  const Shape& shape = context.shape(0);
  const int64_t axis = context.attributes.integer("axis"), rank = shape.rank();
  std::vector<int64_t> dims = shape.dims();
  const bool is_axis = axis >= -rank && axis < rank;
  if (is_axis && group > 0) {
    int64_t& size = dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
    size = size / group + (size % group != 0 ? 1 : 0);
  }
  if (group < 0 || !is_axis || context.shape(1) != Shape(dims))
    context.fail(
        fmt::format("scale must be {} for groups of {}, got {}", to_string(Shape(dims)), group, context.describe(1)));
}

std::vector<TensorType> infer_dequantize(const InferContext& context) {
  const DType dtype = context.dtype(0);
  if (!is_packed(dtype)) require_byte(context, 0);
  context.require_dtype(1, DType::f32);
  context.require_dtype(2, dtype);
  if (const int64_t group = context.attributes.integer("group"); group != 0)
    require_groups(context, group);
  else
    require_factor(context, 1, quantized_channels(context, 1));
  if (context.shape(2) != context.shape(1)) context.fail("scale and zero_point must have the same shape");
  return {f32(context.shape(0))};
}

std::vector<TensorType> infer_requantize(const InferContext& context) {
  context.require_dtype(0, DType::i32);
  context.require_dtype(1, DType::f32);
  const DType dtype = require_byte(context, 2);
  require_factor(context, 1, quantized_channels(context, 1));
  require_one(context, 2);
  if (context.input_count() > 3) {
    context.require_dtype(3, DType::i32);
    require_factor(context, 3, quantized_channels(context, 3));
  }
  require_requantization(context, dtype);
  return {typed(dtype, context.shape(0))};
}

std::vector<TensorType> infer_quantized_add(const InferContext& context) {
  const DType dtype = require_byte(context, 7);
  for (const int side : {0, 1}) {
    const DType own = require_byte(context, side);
    context.require_dtype(2 + 2 * side, DType::f32);
    context.require_dtype(3 + 2 * side, own);
  }
  context.require_dtype(6, DType::f32);
  for (int input = 2; input < 8; ++input) require_one(context, input);
  context.require_same_shape(0, 1);
  require_byte_limits(context);
  if (context.attributes.integer("low") > (dtype == DType::i8 ? 127 : 255) ||
      context.attributes.integer("high") < (dtype == DType::i8 ? -128 : 0))
    context.fail(fmt::format("low and high leave no number of {}", name_of(dtype)));
  return {typed(dtype, context.shape(0))};
}

std::vector<TensorType> infer_quantized_affine(const InferContext& context) {
  require_byte(context, 0);
  const DType dtype = require_byte(context, 3);
  for (const int factor : {1, 2}) {
    context.require_dtype(factor, DType::f32);
    require_factor(context, factor, quantized_channels(context, factor));
  }
  if (context.shape(1) != context.shape(2)) context.fail("factor and shift must have the same shape");
  require_one(context, 3);
  require_byte_limits(context);
  if (context.attributes.integer("low") > (dtype == DType::i8 ? 127 : 255) ||
      context.attributes.integer("high") < (dtype == DType::i8 ? -128 : 0))
    context.fail(fmt::format("low and high leave no number of {}", name_of(dtype)));
  return {typed(dtype, context.shape(0))};
}

constexpr OpExample::Range kExampleScales{0.01, 0.02}, kExampleFactors{1e-3, 1e-2};

OpDef quantize_op() {
  OpDef op;
  op.name = "quantize_linear";
  op.summary = "Reals as integers of 8 bits: x / scale, half to even, plus the zero point, at the limits of the type.";
  op.inputs = {"x", "scale", "zero_point"};
  op.outputs = {"q"};
  op.attributes = {quantized_axis_attribute()};
  op.infer = infer_quantize;
  op.flops = [](const auto&, const auto& outputs, const Attributes&) { return 2 * outputs[0].elements(); };
  op.layout_rule = LayoutRule::channelwise;
  const auto one = [](std::string label, Shape shape, DType dtype, const Shape& factors, int64_t axis = 1) {
    const OpExample::Range zeros = dtype == DType::i8 ? OpExample::Range{-9, 9} : OpExample::Range{100, 140};
    return OpExample{std::move(label),
                     {f32(std::move(shape)), f32(factors), typed(dtype, factors)},
                     {{"axis", axis}},
                     {{-2, 2}, kExampleScales, zeros}};
  };
  op.examples = {one("rows to i8", {7, 19}, DType::i8, {}), one("images to u8", {2, 5, 3, 4}, DType::u8, {}),
                 one("images, a scale per channel", {2, 16, 3, 3}, DType::i8, {16}),
                 one("a scale per output channel of weights", {6, 5, 3, 3}, DType::i8, {6}, 0),
                 one("one number", {}, DType::u8, {})};
  return op;
}

OpDef dequantize_op() {
  OpDef op;
  op.name = "dequantize_linear";
  op.summary = "The reals that integers of 8 bits and fewer stand for: (q - zero point) scale.";
  op.inputs = {"q", "scale", "zero_point"};
  op.outputs = {"x"};
  op.attributes = {quantized_axis_attribute(),
                   attribute("group", int64_t{0}, "numbers along the axis that share a scale; 0: all of a channel")};
  op.infer = infer_dequantize;
  op.flops = [](const auto&, const auto& outputs, const Attributes&) { return 2 * outputs[0].elements(); };
  op.layout_rule = LayoutRule::channelwise;
  const auto one = [](std::string label, Shape shape, DType dtype, const Shape& factors, int64_t axis = 1) {
    return OpExample{std::move(label),
                     {typed(dtype, std::move(shape)), f32(factors), typed(dtype, factors)},
                     {{"axis", axis}},
                     {all_of(dtype), kExampleScales, all_of(dtype)}};
  };
  const auto of_groups = [&](std::string label, DType dtype) {
    OpExample example = one(std::move(label), {12, 10}, dtype, {3, 10}, 0);
    example.attributes.set("group", int64_t{5});
    return example;
  };
  op.examples = {one("rows of i8", {7, 19}, DType::i8, {}),
                 one("images of u8", {2, 5, 3, 4}, DType::u8, {}),
                 one("images, a scale per channel", {2, 16, 3, 3}, DType::i8, {16}),
                 one("a scale per output channel of weights", {6, 5, 3, 3}, DType::i8, {6}, 0),
                 one("one number", {}, DType::u8, {}),
                 of_groups("groups of 4 bits, the last one smaller", DType::i4),
                 of_groups("groups of 2 bits, the last one smaller", DType::u2)};
  return op;
}

OpDef requantize_op() {
  OpDef op;
  op.name = "requantize";
  op.summary = "Sums of i32, plus a bias, as integers of 8 bits: times a factor, rounded, plus the zero point.";
  op.inputs = {"sum", "factor", "zero_point", "bias?"};
  op.outputs = {"q"};
  op.attributes = requantize_attributes();
  op.attributes.insert(op.attributes.begin(), quantized_axis_attribute());
  op.infer = infer_requantize;
  op.flops = [](const auto&, const auto& outputs, const Attributes&) { return 2 * outputs[0].elements(); };
  op.layout_rule = LayoutRule::channelwise;
  const auto one = [](std::string label, Shape shape, DType dtype, Shape factors, std::string rounding,
                      Attributes more = {}, int64_t axis = 1) {
    more.set("rounding", std::move(rounding));
    more.set("axis", axis);
    const OpExample::Range zeros = dtype == DType::i8 ? OpExample::Range{-9, 9} : OpExample::Range{100, 140};
    return OpExample{std::move(label),
                     {i32(std::move(shape)), f32(std::move(factors)), typed(dtype, {})},
                     std::move(more),
                     {{-30000, 30000}, kExampleFactors, zeros, {-1000, 1000}}};
  };
  op.examples = {one("rows to i8", {7, 19}, DType::i8, {}, "float"),
                 one("rows to i8, fixed", {7, 19}, DType::i8, {}, "fixed"),
                 one("images, a factor per channel", {2, 16, 3, 3}, DType::u8, {16}, "float"),
                 one("images, a factor per channel, fixed", {2, 16, 3, 3}, DType::u8, {16}, "fixed"),
                 one("a multiplier of 8 bits", {3, 5, 2, 2}, DType::i8, {}, "fixed", {{"multiplier_bits", int64_t{8}}}),
                 one("a relu", {2, 4, 3, 3}, DType::i8, {4}, "float", {{"low", int64_t{0}}, {"high", int64_t{96}}}),
                 one("channels last", {5, 6}, DType::u8, {6}, "float", {}, -1)};
  OpExample biased = one("a bias per channel", {2, 16, 3, 3}, DType::u8, {16}, "float");
  biased.inputs.push_back(i32({16}));
  op.examples.push_back(biased);
  return op;
}

OpDef quantized_add_op() {
  OpDef op;
  op.name = "quantized_add";
  op.summary = "The sum of the reals that two tensors of 8 bits stand for, as integers of 8 bits again.";
  op.inputs = {"a", "b", "a_scale", "a_zero_point", "b_scale", "b_zero_point", "scale", "zero_point"};
  op.outputs = {"q"};
  op.attributes = {least_attribute(), greatest_attribute()};
  op.infer = infer_quantized_add;
  op.flops = [](const auto&, const auto& outputs, const Attributes&) { return 6 * outputs[0].elements(); };
  op.layout_rule = LayoutRule::elementwise;
  const auto one = [](std::string label, const Shape& shape, DType a, DType b, DType result,
                      Attributes attributes = {}) {
    return OpExample{
        std::move(label),
        {typed(a, shape), typed(b, shape), f32({}), typed(a, {}), f32({}), typed(b, {}), f32({}), typed(result, {})},
        std::move(attributes),
        {all_of(a), all_of(b), kExampleScales, all_of(a), kExampleScales, all_of(b), kExampleScales, all_of(result)}};
  };
  op.examples = {one("images of u8", {2, 5, 3, 4}, DType::u8, DType::u8, DType::u8),
                 one("images of i8", {2, 16, 3, 3}, DType::i8, DType::i8, DType::i8),
                 one("with a relu", {7, 33}, DType::i8, DType::u8, DType::u8, {{"low", int64_t{128}}})};
  return op;
}

OpDef quantized_affine_op() {
  OpDef op;
  op.name = "quantized_affine";
  op.summary =
      "Integers of 8 bits, times a factor, plus a shift, as integers of 8 bits: a batch norm of known numbers.";
  op.inputs = {"q", "factor", "shift", "zero_point"};
  op.outputs = {"y"};
  op.attributes = {quantized_axis_attribute(), least_attribute(), greatest_attribute()};
  op.infer = infer_quantized_affine;
  op.flops = [](const auto&, const auto& outputs, const Attributes&) { return 2 * outputs[0].elements(); };
  op.layout_rule = LayoutRule::channelwise;
  const auto one = [](std::string label, Shape shape, DType from, DType to, const Shape& factors, Attributes more = {},
                      int64_t axis = 1) {
    more.set("axis", axis);
    return OpExample{
        std::move(label),
        {typed(from, std::move(shape)), f32(factors), f32(factors), typed(to, {})},
        std::move(more),
        {all_of(from), {-2, 2}, {-20, 20}, to == DType::i8 ? OpExample::Range{-9, 9} : OpExample::Range{100, 140}}};
  };
  op.examples = {one("images, per channel", {2, 16, 3, 3}, DType::i8, DType::i8, {16}),
                 one("images of u8, per channel", {2, 5, 3, 4}, DType::u8, DType::u8, {5}),
                 one("another type", {2, 5, 3, 4}, DType::u8, DType::i8, {5}),
                 one("a relu", {2, 4, 3, 3}, DType::i8, DType::u8, {4}, {{"low", int64_t{120}}}),
                 one("one factor", {7, 33}, DType::i8, DType::i8, {}),
                 one("channels last", {5, 19}, DType::u8, DType::i8, {19}, {}, -1)};
  return op;
}

}  // namespace

DType require_byte(const InferContext& context, int input) {
  const DType dtype = context.dtype(input);
  if (!is_byte(dtype))
    context.fail(fmt::format("{} wants i8 or u8, got {} of {}; quantize it first",
                             context.op.inputs[static_cast<size_t>(input)], context.describe(input), name_of(dtype)));
  return dtype;
}

void require_one(const InferContext& context, int input) {
  if (context.shape(input).rank() != 0)
    context.fail(fmt::format("{} must be one number, got {}", context.op.inputs[static_cast<size_t>(input)],
                             context.describe(input)));
}

void require_factor(const InferContext& context, int input, int64_t channels) {
  if (context.shape(input).rank() == 0 || context.shape(input) == Shape{channels}) return;
  context.fail(fmt::format("{} must be one number, or one for each of {} channels, got {}",
                           context.op.inputs[static_cast<size_t>(input)], channels, context.describe(input)));
}

std::vector<AttributeSpec> requantize_attributes() {
  return {attribute("rounding", "float",
                    "float: f32 of the sum times the factor, half to even; fixed: a multiplier and a shift"),
          attribute("multiplier_bits", int64_t{24}, "of the fixed kind's multiplier; 24 hold every factor exactly"),
          least_attribute(), greatest_attribute()};
}

void require_requantization(const InferContext& context, DType result) {
  const std::string& rounding = context.attributes.text("rounding");
  if (rounding != "float" && rounding != "fixed")
    context.fail("rounding \"" + rounding + "\" is not known; give \"float\" or \"fixed\"");
  const int64_t bits = context.attributes.integer("multiplier_bits");
  if (bits < 2 || bits > kMostMultiplierBits)
    context.fail(fmt::format("multiplier_bits must be 2 to {}, got {}", kMostMultiplierBits, bits));
  require_byte_limits(context);
  if (context.attributes.integer("low") > (result == DType::i8 ? 127 : 255) ||
      context.attributes.integer("high") < (result == DType::i8 ? -128 : 0))
    context.fail(fmt::format("low and high leave no number of {}", name_of(result)));
}

IntegerRange range_of(const Attributes& attributes, DType result) {
  const int64_t lowest = result == DType::i8 ? -128 : 0, highest = result == DType::i8 ? 127 : 255;
  return {static_cast<int32_t>(std::max(lowest, attributes.integer("low"))),
          static_cast<int32_t>(std::min(highest, attributes.integer("high")))};
}

Requantization requantization_of(const Attributes& attributes, DType result) {
  return {attributes.text("rounding") == "fixed" ? RequantizeRounding::fixed : RequantizeRounding::real,
          static_cast<int>(attributes.integer("multiplier_bits")), range_of(attributes, result)};
}

IntegerWindow integer_window(const Attributes& attributes) {
  return {attributes.integers("stride"), attributes.integers("dilation"), attributes.integers("padding"),
          attributes.integer("groups")};
}

void add_quantized_ops(OpRegistry& registry) {
  registry.add(quantize_op());
  registry.add(dequantize_op());
  registry.add(requantize_op());
  registry.add(quantized_add_op());
  registry.add(quantized_affine_op());
}

ValueId quantize_linear(Graph& graph, ValueId x, ValueId scale, ValueId zero_point, int64_t axis,
                        const std::string& name) {
  return graph.add("quantize_linear", {x, scale, zero_point}, {{"axis", axis}}, name);
}
ValueId dequantize_linear(Graph& graph, ValueId q, ValueId scale, ValueId zero_point, int64_t axis,
                          const std::string& name, int64_t group) {
  return graph.add("dequantize_linear", {q, scale, zero_point}, {{"axis", axis}, {"group", group}}, name);
}

}  // namespace weft::ops
