// Matrix products and convolutions of integers of 8 bits: with sums in i32, which are exact, with sums that become 8
// bits again, or f32. requantization.h has the formulas.
#include <algorithm>
#include <array>

#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/integer/quantized.h"

namespace weft::ops {

namespace {

// --- matrix products
// ---------------------------------------------------------------------------------------------------

Shape infer_product_shape(const InferContext& context) {
  for (const int operand : {0, 1})
    if (context.shape(operand).rank() < 2)
      context.fail(fmt::format("operands are matrices or stacks of them (rank 2 or more), got {}; reshape it first",
                               context.describe(operand)));
  const Shape &a = context.shape(0), &b = context.shape(1);
  const int64_t rows = a[a.rank() - 2], inner = a[a.rank() - 1], columns = b[b.rank() - 1];
  if (b[b.rank() - 2] != inner)
    context.fail(fmt::format("{} has rows of {} elements, but {} has columns of {}", context.describe(0), inner,
                             context.describe(1), b[b.rank() - 2]));
  const auto leading = broadcast_shapes(Shape(std::vector<int64_t>(a.begin(), a.end() - 2)),
                                        Shape(std::vector<int64_t>(b.begin(), b.end() - 2)));
  if (!leading)
    context.fail(fmt::format("leading dimensions of {} and {} do not broadcast; they must be equal or 1",
                             context.describe(0), context.describe(1)));
  std::vector<int64_t> dims = leading->dims();
  dims.push_back(rows);
  dims.push_back(columns);
  return Shape(dims);
}

/// Operand 2: of operand 0, one number. Operand 3: of operand 1, one number or one per channel.
void require_zero_points(const InferContext& context, int64_t channels) {
  for (const int operand : {0, 1}) {
    const DType dtype = require_byte(context, operand);
    const int zero_point = operand + 2;
    if (zero_point >= context.input_count()) continue;
    context.require_dtype(zero_point, dtype);
    if (operand == 0)
      require_one(context, zero_point);
    else
      require_factor(context, zero_point, channels);
  }
}

/// Operands 4 to 6: factor, zero point of the result, bias. The result's type.
DType require_result(const InferContext& context, int64_t channels) {
  context.require_dtype(4, DType::f32);
  require_factor(context, 4, channels);
  const DType dtype = require_byte(context, 5);
  require_one(context, 5);
  if (context.input_count() > 6) {
    context.require_dtype(6, DType::i32);
    if (context.shape(6) != Shape{channels})
      context.fail(
          fmt::format("bias must be one number for each of {} channels, got {}", channels, context.describe(6)));
  }
  require_requantization(context, dtype);
  return dtype;
}

int64_t product_operations(const std::vector<TensorType>& inputs, const std::vector<TensorType>& outputs,
                           const Attributes&) {
  return 2 * outputs[0].elements() * inputs[0].shape[inputs[0].shape.rank() - 1];
}

// Cases are constants, which take a tenth of the room of code that builds them.

/// Up to four sizes; those that are 0 are not there.
using Sizes = std::array<int64_t, 4>;
Shape shape_of(const Sizes& sizes) {
  std::vector<int64_t> dims(sizes.begin(), std::find(sizes.begin(), sizes.end(), 0));
  return Shape(std::move(dims));
}

struct ProductCase {
  const char* label;
  Sizes a, b;
  DType a_dtype, b_dtype;
  bool per_channel = false;
};

constexpr ProductCase kProductCases[] = {
    {"u8 by i8", {3, 5}, {5, 4}, DType::u8, DType::i8},
    {"multiples of 16", {16, 32}, {32, 48}, DType::u8, DType::i8},
    {"i8 by i8, a zero point per column", {7, 10}, {10, 33}, DType::i8, DType::i8, true},
    {"u8 by u8", {6, 64}, {64, 17}, DType::u8, DType::u8},
    {"one row", {1, 70}, {70, 130}, DType::u8, DType::i8},
    {"i8 by u8", {9, 3}, {3, 1}, DType::i8, DType::u8, true},
    {"one matrix for a batch", {2, 3, 4}, {4, 5}, DType::u8, DType::i8},
    {"batch", {3, 2, 8}, {3, 8, 5}, DType::i8, DType::i8},
    {"broadcast on both sides", {2, 1, 3, 4}, {1, 3, 4, 2}, DType::u8, DType::u8}};

// --- convolutions
// --------------------------------------------------------------------------------------------------------

struct Window {
  Pair stride;
  std::array<int64_t, 4> padding;
  int64_t groups = 1;
  Pair dilation = {1, 1};
};
Attributes attributes_of(const Window& window) {
  const auto list = [](const auto& numbers) { return std::vector<int64_t>(numbers.begin(), numbers.end()); };
  return {{"stride", list(window.stride)},
          {"padding", list(window.padding)},
          {"dilation", list(window.dilation)},
          {"groups", window.groups}};
}

std::vector<AttributeSpec> integer_conv_attributes() {
  return {attribute("stride", std::vector<int64_t>{1, 1}, "rows and columns from one window to the next"),
          attribute("padding", std::vector<int64_t>{0, 0, 0, 0},
                    "rows above, columns to the left, rows below, columns to the right that hold the zero point"),
          attribute("dilation", std::vector<int64_t>{1, 1}, "rows and columns from one kernel element to the next"),
          attribute("groups", int64_t{1}, "parts into which the channels are cut; all channels: depthwise")};
}

void require_window_numbers(const InferContext& context, const std::string& name, size_t count, int64_t least) {
  const std::vector<int64_t>& list = context.attributes.integers(name);
  const auto is_bad = [&](int64_t value) { return value < least || value > kMostElements; };
  if (list.size() != count || std::any_of(list.begin(), list.end(), is_bad))
    context.fail(
        fmt::format("{} takes {} numbers of at least {}, got {}", name, count, least, to_string(AttributeValue(list))));
}

Shape infer_conv_shape(const InferContext& context) {
  for (const int operand : {0, 1}) context.require_rank(operand, 4);
  require_window_numbers(context, "stride", 2, 1);
  require_window_numbers(context, "dilation", 2, 1);
  require_window_numbers(context, "padding", 4, 0);
  const IntegerWindow window = integer_window(context.attributes);
  const Shape &input = context.shape(0), &weight = context.shape(1);
  if (window.groups < 1) context.fail(fmt::format("groups must be at least 1, got {}", window.groups));
  if (weight[0] % window.groups != 0 || weight[0] < window.groups || weight[2] < 1 || weight[3] < 1)
    context.fail(fmt::format("weight {} must have a multiple of {} output channels and a kernel of at least 1 x 1",
                             context.describe(1), window.groups));
  if (input[1] % window.groups != 0 || weight[1] != input[1] / window.groups)
    context.fail(fmt::format("weight {} in {} groups does not fit the {} channels of {}", context.describe(1),
                             window.groups, input[1], context.describe(0)));
  Shape output{input[0], weight[0], 0, 0};
  for (int axis = 0; axis < 2; ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int64_t kernel = weight[axis + 2];
    if (!has_bounded_size({kernel, window.dilation[at]}))
      context.fail(fmt::format("a dilation of {} puts a kernel of {} out of every image", window.dilation[at], kernel));
    const int64_t extent = window.dilation[at] * (kernel - 1) + 1;
    const int64_t size = input[axis + 2] + window.padding[at] + window.padding[at + 2];
    if (size < extent)
      context.fail(fmt::format("a kernel of {} {} does not fit into {} with its padding: {}; pad more", extent,
                               axis == 0 ? "rows" : "columns", context.describe(0), size));
    output[axis + 2] = (size - extent) / window.stride[at] + 1;
  }
  return output;
}

int64_t conv_operations(const std::vector<TensorType>& inputs, const std::vector<TensorType>& outputs,
                        const Attributes&) {
  const Shape& weight = inputs[1].shape;
  return 2 * outputs[0].elements() * weight[1] * weight[2] * weight[3];
}

struct IntegerConvCase {
  const char* label;
  Sizes input, weight;
  Window window;
  DType input_dtype = DType::u8, weight_dtype = DType::i8;
  bool per_channel = false;
  bool is_symmetric = false;  // the weights' zero point is 0
};

constexpr IntegerConvCase symmetric(IntegerConvCase one) {
  one.is_symmetric = true;
  return one;
}

constexpr Pair kOne{1, 1};
constexpr std::array<int64_t, 4> kNone{0, 0, 0, 0}, kAround{1, 1, 1, 1};
constexpr IntegerConvCase kIntegerConvCases[] = {
    {"3x3", {2, 3, 6, 6}, {4, 3, 3, 3}, Window{kOne, kAround}},
    {"3x3, 16 to 32 channels", {2, 16, 7, 7}, {32, 16, 3, 3}, Window{kOne, kAround}},
    {"1x1, 64 channels", {1, 64, 5, 5}, {80, 64, 1, 1}, Window{kOne, kNone}},
    {"1x1 with stride", {2, 8, 5, 5}, {16, 8, 1, 1}, Window{{2, 2}, kNone}, DType::i8},
    {"stem: 7x7", {1, 3, 11, 9}, {16, 3, 7, 7}, Window{{2, 2}, {3, 3, 3, 3}}, DType::u8, DType::i8, true},
    {"u8 weights, a zero point per channel",
     {1, 5, 6, 6},
     {7, 5, 3, 3},
     Window{kOne, kAround},
     DType::u8,
     DType::u8,
     true},
    {"i8 by i8, uneven padding", {1, 4, 7, 6}, {17, 4, 3, 2}, Window{{2, 1}, {0, 1, 1, 0}}, DType::i8},
    {"dilated", {1, 2, 8, 8}, {3, 2, 3, 3}, Window{kOne, {2, 2, 2, 2}, 1, {2, 2}}},
    {"two groups", {2, 4, 5, 5}, {6, 2, 3, 3}, Window{kOne, kAround, 2}, DType::i8, DType::u8},
    {"two groups of 16", {1, 32, 4, 4}, {32, 16, 3, 3}, Window{kOne, kAround, 2}},
    {"depthwise", {1, 21, 6, 6}, {21, 1, 3, 3}, Window{kOne, kAround, 21}, DType::u8, DType::i8, true},
    {"depthwise, stride 2, i8", {2, 16, 7, 7}, {16, 1, 3, 3}, Window{{2, 2}, kAround, 16}, DType::i8},
    // Weights as most are quantized: around 0.
    symmetric({"3x3, 16 to 80 channels", {1, 16, 5, 4}, {80, 16, 3, 3}, Window{kOne, kAround}}),
    symmetric({"1x1, i8", {1, 20, 5, 5}, {37, 20, 1, 1}, Window{kOne, kNone}, DType::i8}),
    symmetric({"picture, 7x7", {1, 3, 11, 9}, {16, 3, 7, 7}, Window{{2, 2}, {3, 3, 3, 3}}}),
    symmetric({"picture of i8, uneven padding", {1, 3, 6, 7}, {20, 3, 3, 3}, Window{kOne, {0, 1, 1, 2}}, DType::i8}),
    symmetric({"two channels, dilated rows", {1, 2, 9, 6}, {5, 2, 3, 3}, Window{kOne, {2, 0, 0, 1}, 1, {2, 1}}}),
    symmetric({"two groups of 16", {1, 32, 4, 4}, {32, 16, 3, 3}, Window{kOne, kAround, 2}}),
    symmetric({"depthwise", {1, 80, 5, 37}, {80, 1, 3, 3}, Window{kOne, kAround, 80}}),
    symmetric({"depthwise, i8, stride 2", {1, 70, 6, 7}, {70, 1, 3, 3}, Window{{2, 2}, kAround, 70}, DType::i8}),
    symmetric({"depthwise, 5x5", {1, 9, 8, 7}, {9, 1, 5, 5}, Window{{1, 2}, {2, 2, 2, 2}, 9}}),
    symmetric({"depthwise, dilated, 2x3", {1, 16, 6, 8}, {16, 1, 2, 3}, Window{kOne, kNone, 16, {2, 3}}, DType::i8}),
};

// --- the ops
// ----------------------------------------------------------------------------------------------------------

OpExample::Range example_zeros(DType dtype) {
  return dtype == DType::i8 ? OpExample::Range{-9, 9} : OpExample::Range{100, 140};
}

/// Two operands with their zero points.
OpExample sum_example(std::string label, TensorType a, TensorType b, Shape b_zeros, Attributes attributes) {
  const DType a_dtype = a.dtype, b_dtype = b.dtype;
  return {std::move(label),
          {std::move(a), std::move(b), typed(a_dtype, {}), typed(b_dtype, std::move(b_zeros))},
          std::move(attributes),
          {all_of(a_dtype), all_of(b_dtype), example_zeros(a_dtype), example_zeros(b_dtype)}};
}

/// Each in both kinds of requantization: the second with a bias and a relu.
void add_requantized(std::vector<OpExample>& examples, const OpExample& sums, int64_t channels) {
  OpExample real = sums, fixed = sums;
  real.inputs.push_back(f32({channels}));
  real.inputs.push_back(typed(DType::u8, {}));
  fixed.label += ", fixed";
  fixed.inputs.push_back(f32({}));
  fixed.inputs.push_back(typed(DType::i8, {}));
  fixed.inputs.push_back(i32({channels}));
  fixed.attributes.set("rounding", std::string("fixed"));
  fixed.attributes.set("low", int64_t{0});
  for (OpExample* example : {&real, &fixed}) {
    example->ranges.push_back({1e-4, 1e-2});
    example->ranges.push_back(example == &real ? OpExample::Range{100, 140} : OpExample::Range{0, 1});
    example->ranges.push_back({-2000, 2000});
    examples.push_back(*example);
  }
}

int64_t channels_of(const ProductCase& c) {
  const Shape b = shape_of(c.b);
  return b[b.rank() - 1];
}

OpExample product_sum_example(const ProductCase& c) {
  return sum_example(c.label, typed(c.a_dtype, shape_of(c.a)), typed(c.b_dtype, shape_of(c.b)),
                     c.per_channel ? Shape{channels_of(c)} : Shape{}, {});
}

OpDef integer_matmul_op() {
  OpDef op;
  op.name = "integer_matmul";
  op.summary =
      "Matrix product of integers of 8 bits, less their zero points, exact in i32; leading dimensions broadcast.";
  op.inputs = {"a", "b", "a_zero_point?", "b_zero_point?"};
  op.outputs = {"sum"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Shape shape = infer_product_shape(context);
    require_zero_points(context, shape[shape.rank() - 1]);
    return {i32(shape)};
  };
  op.flops = product_operations;
  op.layout_rule = LayoutRule::kernel;
  for (const ProductCase& c : kProductCases) op.examples.push_back(product_sum_example(c));
  op.examples.push_back({"without zero points",
                         {typed(DType::u8, {5, 9}), typed(DType::i8, {9, 20})},
                         {},
                         {all_of(DType::u8), all_of(DType::i8)}});
  return of_work(work::kMatrixProducts, std::move(op));
}

OpDef quantized_matmul_op() {
  OpDef op;
  op.name = "quantized_matmul";
  op.summary = "integer_matmul with a bias and requantize behind it, in one: what fuse_requantize makes.";
  op.inputs = {"a", "b", "a_zero_point", "b_zero_point", "factor", "zero_point", "bias?"};
  op.outputs = {"q"};
  op.attributes = requantize_attributes();
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Shape shape = infer_product_shape(context);
    require_zero_points(context, shape[shape.rank() - 1]);
    return {typed(require_result(context, shape[shape.rank() - 1]), shape)};
  };
  op.flops = product_operations;
  op.layout_rule = LayoutRule::kernel;
  for (const ProductCase& c : kProductCases) add_requantized(op.examples, product_sum_example(c), channels_of(c));
  OpExample around_zero =
      sum_example("weights around 0", typed(DType::u8, {15, 24}), typed(DType::i8, {24, 77}), {}, {});
  around_zero.ranges[3] = {0, 1};
  add_requantized(op.examples, around_zero, 77);
  return of_work(work::kMatrixProducts, std::move(op));
}

/// Each with a factor for all and with one per column, without a bias and with one.
void add_reals(std::vector<OpExample>& examples, const OpExample& sums, int64_t columns) {
  for (const Shape& factors : {Shape{}, Shape{columns}}) {
    OpExample example = sums;
    if (factors.rank() == 1) example.label += ", factors";
    example.inputs.push_back(f32(factors));
    example.ranges.push_back({1e-4, 1e-2});
    examples.push_back(example);
    example.label += ", a bias";
    example.inputs.push_back(f32({columns}));
    example.ranges.push_back({-2, 2});
    examples.push_back(std::move(example));
  }
}

OpDef dequantized_matmul_op() {
  OpDef op;
  op.name = "dequantized_matmul";
  op.summary = "integer_matmul, its sums times a factor, plus a bias, in f32: what form_integer_products makes.";
  op.inputs = {"a", "b", "a_zero_point", "b_zero_point", "factor", "bias?"};
  op.outputs = {"y"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Shape shape = infer_product_shape(context);
    const int64_t columns = shape[shape.rank() - 1];
    require_zero_points(context, columns);
    context.require_dtype(4, DType::f32);
    require_factor(context, 4, columns);
    if (context.input_count() > 5) {
      context.require_dtype(5, DType::f32);
      if (context.shape(5) != Shape{columns})
        context.fail(
            fmt::format("bias must be one number for each of {} columns, got {}", columns, context.describe(5)));
    }
    return {f32(shape)};
  };
  op.flops = product_operations;
  op.layout_rule = LayoutRule::kernel;
  for (const ProductCase& c : kProductCases) add_reals(op.examples, product_sum_example(c), channels_of(c));
  return of_work(work::kMatrixProducts, std::move(op));
}

OpExample conv_sum_example(const IntegerConvCase& c) {
  OpExample example =
      sum_example(c.label, typed(c.input_dtype, shape_of(c.input)), typed(c.weight_dtype, shape_of(c.weight)),
                  c.per_channel ? Shape{c.weight[0]} : Shape{}, attributes_of(c.window));
  if (!c.is_symmetric) return example;
  example.label += ", symmetric";
  example.ranges[3] = {0, 1};
  return example;
}

OpDef integer_conv2d_op() {
  OpDef op;
  op.name = "integer_conv2d";
  op.summary =
      "Convolution of images [N,C,H,W] of 8 bits with weights [O,C/groups,KH,KW] of 8 bits, less their zero points, "
      "exact in i32.";
  op.inputs = {"input", "weight", "input_zero_point?", "weight_zero_point?"};
  op.outputs = {"sum"};
  op.attributes = integer_conv_attributes();
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Shape shape = infer_conv_shape(context);
    require_zero_points(context, shape[1]);
    return {i32(shape)};
  };
  op.flops = conv_operations;
  op.layout_rule = LayoutRule::kernel;
  for (const IntegerConvCase& c : kIntegerConvCases) op.examples.push_back(conv_sum_example(c));
  op.examples.push_back({"without zero points",
                         {typed(DType::u8, {1, 4, 5, 5}), typed(DType::i8, {16, 4, 3, 3})},
                         attributes_of({kOne, kAround}),
                         {all_of(DType::u8), all_of(DType::i8)}});
  return of_work(work::kConvolution, std::move(op));
}

OpDef quantized_conv2d_op() {
  OpDef op;
  op.name = "quantized_conv2d";
  op.summary = "integer_conv2d with a bias and requantize behind it, in one: what fuse_requantize makes.";
  op.inputs = {"input", "weight", "input_zero_point", "weight_zero_point", "factor", "zero_point", "bias?"};
  op.outputs = {"q"};
  op.attributes = integer_conv_attributes();
  for (AttributeSpec& spec : requantize_attributes()) op.attributes.push_back(std::move(spec));
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Shape shape = infer_conv_shape(context);
    require_zero_points(context, shape[1]);
    return {typed(require_result(context, shape[1]), shape)};
  };
  op.flops = conv_operations;
  op.layout_rule = LayoutRule::kernel;
  for (const IntegerConvCase& c : kIntegerConvCases) add_requantized(op.examples, conv_sum_example(c), c.weight[0]);
  return of_work(work::kConvolution, std::move(op));
}

}  // namespace

void add_integer_product_ops(OpRegistry& registry) {
  registry.add(integer_matmul_op());
  registry.add(quantized_matmul_op());
  registry.add(dequantized_matmul_op());
  registry.add(integer_conv2d_op());
  registry.add(quantized_conv2d_op());
}

ValueId integer_matmul(Graph& graph, ValueId a, ValueId b, const std::vector<ValueId>& zero_points,
                       const std::string& name) {
  std::vector<ValueId> operands{a, b};
  operands.insert(operands.end(), zero_points.begin(), zero_points.end());
  return graph.add("integer_matmul", operands, {}, name);
}

ValueId integer_conv2d(Graph& graph, ValueId input, ValueId weight, const std::vector<ValueId>& zero_points,
                       const IntegerConv2dOptions& options, const std::string& name) {
  std::vector<ValueId> operands{input, weight};
  operands.insert(operands.end(), zero_points.begin(), zero_points.end());
  return graph.add("integer_conv2d", operands,
                   attributes_of({options.stride, options.padding, options.groups, options.dilation}), name);
}

ValueId requantize(Graph& graph, ValueId sum, ValueId factor, ValueId zero_point, ValueId bias, int64_t axis,
                   const std::string& name) {
  std::vector<ValueId> operands{sum, factor, zero_point};
  if (bias.valid()) operands.push_back(bias);
  return graph.add("requantize", operands, {{"axis", axis}}, name);
}

}  // namespace weft::ops
