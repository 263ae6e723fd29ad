// Layer normalisation over the last axis (Ba, Kiros and Hinton 2016), and its gradient.
#include "weft/ops/norm/layer_norm.h"

#include "weft/base/error.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {
namespace {

/// The input's shape without its last axis: one entry per row.
Shape rows_of(const InferContext& context, int input) {
  const Shape& shape = context.shape(input);
  if (shape.rank() < 1) context.fail(fmt::format("input wants at least 1 dimension, got {}", context.describe(input)));
  return Shape(std::vector<int64_t>(shape.begin(), shape.end() - 1));
}

/// The operand has one number per element of a row.
void require_row(const InferContext& context, int operand, int input) {
  const Shape& shape = context.shape(input);
  const int64_t width = shape[shape.rank() - 1];
  if (context.shape(operand) == Shape{width}) return;
  context.fail(fmt::format("{} wants one number for each of the {} elements of a row of {}, got {}",
                           context.op.inputs[static_cast<size_t>(operand)], width, context.describe(input),
                           context.describe(operand)));
}

std::vector<TensorType> infer_layer_norm(const InferContext& context) {
  const DType dtype = context.require_compute_dtype(0);
  for (const int operand : {1, 2}) context.require_dtype(operand, DType::f32);
  require_epsilon(context);
  const Shape rows = rows_of(context, 0);
  require_row(context, 1, 0);
  require_row(context, 2, 0);
  return {typed(dtype, context.shape(0)), f32(rows), f32(rows)};
}

std::vector<TensorType> infer_layer_norm_backward(const InferContext& context) {
  const DType dtype = context.require_compute_dtype(0);
  context.require_dtype(1, dtype);
  for (const int operand : {2, 3, 4}) context.require_dtype(operand, DType::f32);
  const Shape rows = rows_of(context, 1);
  context.require_same_shape(0, 1);
  require_row(context, 2, 1);
  for (const int statistic : {3, 4}) {
    if (context.shape(statistic) == rows) continue;
    context.fail(fmt::format("{} wants one number per row of {}, shape {}, got {}",
                             context.op.inputs[static_cast<size_t>(statistic)], context.describe(1), to_string(rows),
                             context.describe(statistic)));
  }
  const TensorType per_column = f32(context.shape(2));
  return {typed(dtype, context.shape(1)), per_column, per_column};
}

/// [..] -> [..,1], so that it broadcasts along the rows.
ValueId per_row(Graph& graph, ValueId x) {
  std::vector<int64_t> dims = graph.shape(x).dims();
  dims.push_back(1);
  return reshape(graph, x, dims);
}

std::vector<ValueId> grad_layer_norm(GradContext& context) {
  Graph& graph = context.graph;
  const ValueId input = context.inputs[0], mean = context.outputs[1], inverse_std = context.outputs[2];
  const Shape shape = graph.shape(input);
  const double width = static_cast<double>(shape[shape.rank() - 1]);
  ValueId output_gradient = context.output_gradients[0];
  if (!output_gradient.valid()) output_gradient = constant(graph, shape, 0);
  std::vector<ValueId> gradients =
      graph.add_node("layer_norm_backward", {output_gradient, input, context.inputs[1], mean, inverse_std}, {},
                     gradient_name(context, "input"));
  // Where something depends on the statistics directly: d mean / dx = 1/D, d inverse_std / dx = -inverse_std^3
  // (x-mean)/D.
  if (context.output_gradients[1].valid()) {
    const ValueId scaled = multiply_scalar(graph, context.output_gradients[1], 1 / width);
    gradients[0] = add(graph, gradients[0], per_row(graph, scaled));
  }
  if (context.output_gradients[2].valid()) {
    const ValueId cube = multiply(graph, square(graph, inverse_std), inverse_std);
    const ValueId scaled = multiply_scalar(graph, multiply(graph, context.output_gradients[2], cube), -1 / width);
    const ValueId centred = subtract(graph, input, per_row(graph, mean));
    gradients[0] = add(graph, gradients[0], multiply(graph, centred, per_row(graph, scaled)));
  }
  return gradients;
}

/// Along rows: what has one number per element of a row is whole, and its gradients are sums.
DimensionRule row_dimensions(const DimensionContext& context, int rank) {
  const auto labels_of = [&](const Shape& shape, bool is_per_column) {
    if (is_per_column) return std::vector<int>{DimensionRule::kWhole};
    std::vector<int> labels = count_up(shape.rank());
    if (shape.rank() == rank) labels.back() = DimensionRule::kWhole;
    return labels;
  };
  DimensionRule rule;
  const bool is_backward = context.inputs.size() == 5;
  for (size_t input = 0; input < context.inputs.size(); ++input)
    rule.inputs.push_back(labels_of(context.inputs[input].shape, is_backward ? input == 2 : input > 0));
  for (size_t output = 0; output < context.outputs.size(); ++output)
    rule.outputs.push_back(labels_of(context.outputs[output].shape, is_backward && output > 0));
  return rule;
}

// Rows of few elements may come out nearly constant, where the inverse deviation is too curved for differences.
constexpr OpExample::Range kRowRange{-2, 2, true}, kRowScale{0.5, 1.5}, kRowShift{-1, 1};

OpExample row_example(std::string label, Shape shape, double epsilon = 1e-5) {
  const Shape row{shape[shape.rank() - 1]};
  return {std::move(label),
          {f32(std::move(shape)), f32(row), f32(row)},
          {{"epsilon", epsilon}},
          {kRowRange, kRowScale, kRowShift}};
}

OpExample row_gradient_example(std::string label, Shape shape) {
  const Shape row{shape[shape.rank() - 1]};
  const Shape rows(std::vector<int64_t>(shape.begin(), shape.end() - 1));
  return {std::move(label),
          {f32(shape), f32(shape), f32(row), f32(rows), f32(rows)},
          {},
          {kRowShift, kRowShift, kRowScale, {-0.2, 0.2}, {0.5, 2}}};
}

}  // namespace

void add_layer_norm_ops(OpRegistry& registry) {
  OpDef op;
  op.name = "layer_norm";
  op.summary = "Normalises each row (the last axis) by its mean and biased variance, then scales and shifts it.";
  op.inputs = {"input", "scale", "shift"};
  op.outputs = {"output", "mean", "inverse_std"};
  op.attributes = {attribute("epsilon", 1e-5, "added to the variance before its root")};
  op.infer = infer_layer_norm;
  op.gradient = grad_layer_norm;
  op.dimensions = [](const DimensionContext& context) {
    return row_dimensions(context, context.inputs[0].shape.rank());
  };
  // Per element: 1 for the mean, 3 for the variance, 2 to normalise, 2 to scale and shift.
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 8 * inputs[0].elements(); };
  op.precision = PrecisionRule::follow;
  op.f32_inputs = {1, 2};
  op.in_place = {{0, 0}};
  op.examples = {row_example("rows", {4, 8}), row_example("sequences", {2, 3, 5}),
                 row_example("multiples of 16", {2, 32}), row_example("odd width", {3, 17}, 1e-3),
                 row_example("one row", {9})};
  registry.add(of_work(work::kNormalisation, std::move(op)));

  OpDef backward;
  backward.name = "layer_norm_backward";
  backward.summary = "Gradients of layer_norm with respect to input, scale and shift.";
  backward.inputs = {"output_gradient", "input", "scale", "mean", "inverse_std"};
  backward.outputs = {"input_gradient", "scale_gradient", "shift_gradient"};
  backward.infer = infer_layer_norm_backward;
  backward.dimensions = [](const DimensionContext& context) {
    return row_dimensions(context, context.inputs[0].shape.rank());
  };
  // Per element: 2 for the normalised input, 3 for the parameters' gradients, 1 to scale, 3 for two sums, 5 for the
  // rest.
  backward.flops = [](const auto& inputs, const auto&, const Attributes&) { return 14 * inputs[0].elements(); };
  backward.precision = PrecisionRule::follow;
  backward.f32_inputs = {2, 3, 4};
  backward.examples = {row_gradient_example("rows", {4, 8}), row_gradient_example("sequences", {2, 3, 5}),
                       row_gradient_example("multiples of 16", {2, 32}), row_gradient_example("odd width", {3, 17})};
  registry.add(of_work(work::kNormalisation, std::move(backward)));
}

ValueId layer_norm(Graph& graph, ValueId input, ValueId scale, ValueId shift, double epsilon, const std::string& name) {
  return graph.add("layer_norm", {input, scale, shift}, {{"epsilon", epsilon}}, name);
}

}  // namespace weft::ops
