// Reductions over axes, softmax and log-softmax.
#include <algorithm>
#include <limits>
#include <utility>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {

namespace {

Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keep_dims) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), axis);
    if (!reduced) dims.push_back(shape[axis]);
    if (reduced && keep_dims) dims.push_back(1);
  }
  return Shape(std::move(dims));
}

Shape infer_reduced_shape(const InferContext& context) {
  std::vector<int> axes;
  for (const int64_t given : context.attributes.integers("axes")) {
    const int axis = require_axis(context, 0, given, "axes:");
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      context.fail(fmt::format("axes {} name axis {} of {} twice; name each axis once",
                               to_string(AttributeValue(context.attributes.integers("axes"))), axis,
                               context.describe(0)));
    axes.push_back(axis);
  }
  axes = normalize_axes(context.attributes.integers("axes"), context.shape(0).rank());
  return reduced_shape(context.shape(0), axes, context.attributes.boolean("keep_dims"));
}

std::vector<TensorType> infer_of(const InferContext& context, DType dtype) {
  const DType result = result_dtype(context, dtype);
  if (result != dtype) context.require_compute_dtype(0);
  return {typed(result, infer_reduced_shape(context))};
}
std::vector<TensorType> infer_of_reals(const InferContext& context) {
  return infer_of(context, require_real(context, 0));
}
std::vector<TensorType> infer_of_numbers(const InferContext& context) {
  return infer_of(context, context.require_number(0));
}

/// The axes of a reduction node and its output's shape had it kept them.
struct Reduction {
  ValueId output_gradient;  // in the input's type
  Shape input;
  std::vector<int64_t> axes;
  Shape kept;
};

Reduction describe_reduction(const GradContext& context) {
  const Attributes attributes = attributes_of(context);
  const Shape shape = context.graph.shape(context.inputs[0]);
  const std::vector<int> axes = normalize_axes(attributes.integers("axes"), shape.rank());
  const DType dtype = context.graph.type(context.inputs[0]).dtype;
  return {as_dtype(context.graph, context.output_gradients[0], dtype),
          shape,
          {axes.begin(), axes.end()},
          reduced_shape(shape, axes, true)};
}

/// Puts the reduced axes back, as ones.
ValueId with_kept_axes(Graph& graph, ValueId x, const Shape& kept) {
  return graph.shape(x) == kept ? x : reshape(graph, x, kept.dims());
}

ValueId stretch(Graph& graph, ValueId x, const Shape& shape) {
  return graph.shape(x) == shape ? x : broadcast_to(graph, x, shape);
}

std::vector<ValueId> sum_gradient(GradContext& context) {
  const Reduction reduction = describe_reduction(context);
  const ValueId kept = with_kept_axes(context.graph, reduction.output_gradient, reduction.kept);
  return {stretch(context.graph, kept, reduction.input)};
}

std::vector<ValueId> mean_gradient(GradContext& context) {
  const Reduction reduction = describe_reduction(context);
  const double count = static_cast<double>(reduction.input.elements()) / static_cast<double>(reduction.kept.elements());
  const ValueId kept = with_kept_axes(context.graph, reduction.output_gradient, reduction.kept);
  return {stretch(context.graph, multiply_scalar(context.graph, kept, 1 / count), reduction.input)};
}

/// Of a maximum or minimum: equal ones share the gradient evenly.
std::vector<ValueId> extremum_gradient(GradContext& context) {
  Graph& graph = context.graph;
  const Reduction reduction = describe_reduction(context);
  const ValueId dy = with_kept_axes(graph, reduction.output_gradient, reduction.kept);
  const DType dtype = graph.type(context.inputs[0]).dtype;
  const ValueId y = with_kept_axes(graph, as_dtype(graph, context.outputs[0], dtype), reduction.kept);
  const ValueId mask = equal(graph, context.inputs[0], y);
  // An empty list of axes would mean all of them: a scalar has none, and its mask is its own sum.
  const ValueId count = reduction.axes.empty() ? mask : reduce_sum(graph, mask, reduction.axes, true);
  return {multiply(graph, mask, divide(graph, dy, count))};
}

/// Of a product: the products of all others, which division by the element would not give where it is zero.
std::vector<ValueId> product_gradient(GradContext& context) {
  Attributes attributes = attributes_of(context);
  attributes.erase("result_dtype");
  return {context.graph.add("reduce_prod_backward", {context.inputs[0], describe_reduction(context).output_gradient},
                            attributes, gradient_name(context, "x"))};
}

/// Axes that stay; those that go too where their numbers can be put together: of sums and means.
DimensionRule reduction_dimensions(const DimensionContext& context, bool of_sums, Joined joined) {
  const Shape& shape = context.inputs[0].shape;
  const std::vector<int> axes = normalize_axes(context.attributes.integers("axes"), shape.rank());
  DimensionRule rule;
  rule.inputs = {count_up(shape.rank())};
  rule.outputs = {{}};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_reduced = std::binary_search(axes.begin(), axes.end(), axis);
    if (!is_reduced || context.attributes.boolean("keep_dims"))
      rule.outputs[0].push_back(is_reduced ? DimensionRule::kWhole : axis);
    if (is_reduced && !of_sums) rule.inputs[0][static_cast<size_t>(axis)] = DimensionRule::kWhole;
  }
  rule.joined = {joined};
  rule.is_linear = of_sums;
  return rule;
}
DimensionRule sum_dimensions(const DimensionContext& context) {
  return reduction_dimensions(context, /*of_sums=*/true, Joined::sum);
}
DimensionRule mean_dimensions(const DimensionContext& context) {
  return reduction_dimensions(context, /*of_sums=*/true, Joined::mean);
}

/// All but the axis along which it is normalised.
DimensionRule softmax_dimensions(const DimensionContext& context) {
  const int rank = context.inputs[0].shape.rank();
  return same_but(context, {normalize_axis(context.attributes.integer("axis"), rank).value()});
}

OpDef reduction(std::string name, std::string summary, std::vector<ValueId> (*gradient)(GradContext&)) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {attribute("axes", std::vector<int64_t>{}, "axes to reduce, negative from the end; empty: all"),
                   attribute("keep_dims", false, "leave reduced axes in the shape, as 1"), result_dtype_attribute()};
  op.infer = infer_of_numbers;
  op.dimensions = [](const DimensionContext& context) {
    return reduction_dimensions(context, /*of_sums=*/false, Joined::sum);
  };
  op.precision = PrecisionRule::follow;
  op.gradient = gradient;
  op.flops = [](const std::vector<TensorType>& inputs, const std::vector<TensorType>&, const Attributes&) {
    return inputs.front().elements();
  };
  using Axes = std::vector<int64_t>;
  op.examples = {
      {"vector, all axes", {f32({7})}, {}, {}},
      {"last axis", {f32({3, 5})}, {{"axes", Axes{-1}}}, {}},
      {"first axis, kept", {f32({3, 5})}, {{"axes", Axes{0}}, {"keep_dims", true}}, {}},
      {"middle axis", {f32({2, 3, 4})}, {{"axes", Axes{1}}}, {}},
      {"outer axes", {f32({3, 2, 3})}, {{"axes", Axes{-1, 0}}}, {}},
      {"per channel, kept", {f32({2, 3, 2, 2})}, {{"axes", Axes{0, 2, 3}}, {"keep_dims", true}}, {}},
      {"rank 4, all axes", {f32({2, 1, 3, 2})}, {}, {}},
      {"scalar", {f32({})}, {}, {}},
  };
  return op;
}

OpDef product_backward() {
  OpDef op;
  op.name = "reduce_prod_backward";
  op.summary = "Gradient of reduce_prod: the output's gradient times the product of all other elements.";
  op.inputs = {"x", "output_gradient"};
  op.outputs = {"x_gradient"};
  op.attributes = {attribute("axes", std::vector<int64_t>{}, "as of reduce_prod"),
                   attribute("keep_dims", false, "as of reduce_prod")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const DType dtype = context.require_compute_dtype(0);
    const Shape reduced = infer_reduced_shape(context);
    context.require_dtype(1, dtype);
    if (context.shape(1) != reduced)
      context.fail(fmt::format("the product of {} is {}, and {} is no gradient of it", context.describe(0),
                               to_string(reduced), context.describe(1)));
    return {typed(dtype, context.shape(0))};
  };
  op.precision = PrecisionRule::follow;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 4 * inputs.front().elements(); };
  using Axes = std::vector<int64_t>;
  op.examples = {
      {"vector, all axes", {f32({7}), f32({})}, {}, {}},
      {"last axis", {f32({3, 5}), f32({3})}, {{"axes", Axes{-1}}}, {}},
      {"first axis, kept", {f32({3, 5}), f32({1, 5})}, {{"axes", Axes{0}}, {"keep_dims", true}}, {}},
      {"outer axes", {f32({3, 2, 3}), f32({2})}, {{"axes", Axes{-1, 0}}}, {}},
      {"zeros", {f32({2, 4}), f32({2})}, {{"axes", Axes{1}}}, {{0, 0}}},
  };
  return op;
}

/// The axis of a softmax node as the list that reductions take.
std::vector<int64_t> softmax_axes(const GradContext& context) { return {attributes_of(context).integer("axis")}; }

std::vector<ValueId> softmax_gradient(GradContext& context) {
  Graph& graph = context.graph;
  return {graph.add("softmax_backward", {context.output_gradients[0], context.outputs[0]}, attributes_of(context),
                    gradient_name(context, "x"))};
}

std::vector<ValueId> log_softmax_gradient(GradContext& context) {
  Graph& graph = context.graph;
  const ValueId dy = context.output_gradients[0];
  const ValueId along = reduce_sum(graph, dy, softmax_axes(context), true);
  return {subtract(graph, dy, multiply(graph, exp(graph, context.outputs[0]), along))};
}

OpDef softmax_op(std::string name, std::string summary, std::vector<ValueId> (*gradient)(GradContext&)) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {attribute("axis", int64_t{-1}, "the axis along which it is normalised, negative from the end")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const DType dtype = require_real(context, 0);
    require_axis(context, 0, context.attributes.integer("axis"));
    return {typed(dtype, context.shape(0))};
  };
  op.dimensions = softmax_dimensions;
  op.gradient = gradient;
  // Maximum, difference, exponential, sum, quotient (or logarithm and difference).
  op.flops = [](const std::vector<TensorType>& inputs, const std::vector<TensorType>&, const Attributes&) {
    return 5 * inputs.front().elements();
  };
  op.examples = {
      {"vector", {f32({7})}, {}, {{-2, 2}}},
      {"rows", {f32({3, 5})}, {}, {{-2, 2}}},
      {"columns", {f32({3, 5})}, {{"axis", int64_t{0}}}, {{-2, 2}}},
      {"channels", {f32({2, 3, 2, 2})}, {{"axis", int64_t{1}}}, {{-2, 2}}},
      {"attention scores", {f32({1, 2, 3, 4})}, {}, {{-2, 2}}},
      {"one class", {f32({3, 1})}, {}, {}},
  };
  return op;
}

/// One op, because the products that it sums up are as many as the scores of an attention, and small beside their sum.
OpDef softmax_backward() {
  OpDef op;
  op.name = "softmax_backward";
  op.summary = "Gradient of softmax: y (dy - sum(dy y)), with the sum along the axis.";
  op.inputs = {"output_gradient", "output"};
  op.outputs = {"input_gradient"};
  op.dimensions = softmax_dimensions;
  op.attributes = {attribute("axis", int64_t{-1}, "as of softmax")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const DType dtype = context.require_compute_dtype(0);
    context.require_dtype(1, dtype);
    context.require_same_shape(0, 1);
    require_axis(context, 0, context.attributes.integer("axis"));
    return {typed(dtype, context.shape(0))};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 4 * inputs.front().elements(); };
  op.precision = PrecisionRule::follow;
  op.in_place = {{0, 0}, {0, 1}};
  for (const auto& [label, shape, axis] : {std::tuple{"vector", Shape{7}, -1},
                                           {"rows", Shape{3, 5}, -1},
                                           {"columns", Shape{3, 5}, 0},
                                           {"channels", Shape{2, 3, 2, 2}, 1},
                                           {"attention scores", Shape{1, 2, 3, 4}, -1},
                                           {"one class", Shape{3, 1}, 1}})
    op.examples.push_back({label, {f32(shape), f32(shape)}, {{"axis", int64_t{axis}}}, {{-1, 1}, {0, 1}}});
  return op;
}

ValueId add_reduction(Graph& graph, const std::string& op, ValueId x, std::vector<int64_t> axes, bool keep_dims,
                      const std::string& name) {
  return graph.add(op, {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}}, name);
}

}  // namespace

void add_reduce_ops(OpRegistry& registry) {
  registry.add(of_work(
      work::kReductions,
      along(reduction("reduce_sum", "Sum over axes; of integers it wraps around.", sum_gradient), sum_dimensions)));
  OpDef mean = along(reduction("reduce_mean", "Mean over axes.", mean_gradient), mean_dimensions);
  mean.infer = infer_of_reals;
  registry.add(of_work(work::kReductions, std::move(mean)));
  registry.add(of_work(work::kReductions,
                       reduction("reduce_prod", "Product over axes; of integers it wraps around.", product_gradient)));
  registry.add(of_work(work::kReductions, product_backward()));
  for (const auto& [name, which] : {std::pair{"reduce_max", "Largest"}, std::pair{"reduce_min", "Smallest"}}) {
    OpDef extremum = reduction(
        name, fmt::format("{} element over axes, NaN where there is one; equal ones share the gradient.", which),
        extremum_gradient);
    for (OpExample& example : extremum.examples) example.ranges = {{-1, 1, true}};
    registry.add(of_work(work::kReductions, std::move(extremum)));
  }
  OpDef softmax = softmax_op("softmax", "exp(x) divided by its sum along an axis.", softmax_gradient);
  softmax.precision = PrecisionRule::follow;
  registry.add(of_work(work::kSoftmax, std::move(softmax)));
  registry.add(of_work(work::kSoftmax, softmax_backward()));
  // A part of losses, whose large numbers of small difference bf16 does not hold: it stays f32.
  registry.add(of_work(work::kSoftmax, softmax_op("log_softmax", "The logarithm of softmax, without its loss of range.",
                                                  log_softmax_gradient)));
}

ValueId reduce_sum(Graph& graph, ValueId x, std::vector<int64_t> axes, bool keep_dims, const std::string& name) {
  return add_reduction(graph, "reduce_sum", x, std::move(axes), keep_dims, name);
}
ValueId reduce_mean(Graph& graph, ValueId x, std::vector<int64_t> axes, bool keep_dims, const std::string& name) {
  return add_reduction(graph, "reduce_mean", x, std::move(axes), keep_dims, name);
}
ValueId reduce_prod(Graph& graph, ValueId x, std::vector<int64_t> axes, bool keep_dims, const std::string& name) {
  return add_reduction(graph, "reduce_prod", x, std::move(axes), keep_dims, name);
}
ValueId reduce_max(Graph& graph, ValueId x, std::vector<int64_t> axes, bool keep_dims, const std::string& name) {
  return add_reduction(graph, "reduce_max", x, std::move(axes), keep_dims, name);
}
ValueId reduce_min(Graph& graph, ValueId x, std::vector<int64_t> axes, bool keep_dims, const std::string& name) {
  return add_reduction(graph, "reduce_min", x, std::move(axes), keep_dims, name);
}
ValueId logsumexp(Graph& graph, ValueId x, const std::vector<int64_t>& axes, bool keep_dims, const std::string& name) {
  const std::string hint = name.empty() ? "logsumexp" : name;
  // Any number near the maximum keeps the exponentials in range, and through floor no gradient flows. An infinite one
  // would give infinity - infinity.
  const ValueId largest = reduce_max(graph, x, axes, true);
  const DType dtype = graph.type(x).dtype;
  const ValueId zero = dtype == DType::f32 ? constant(graph, {}, 0) : cast(graph, constant(graph, {}, 0), dtype);
  // Other types have other limits: there, what is no number when it is taken from itself is infinite.
  const ValueId finite = dtype == DType::f32 ? less_equal(graph, absolute(graph, largest),
                                                          constant(graph, {}, std::numeric_limits<float>::max()))
                                             : equal(graph, subtract(graph, largest, largest), zero);
  const ValueId shift = floor(graph, where(graph, finite, largest, zero));
  const ValueId sum = reduce_sum(graph, exp(graph, subtract(graph, x, shift)), axes, true);
  const ValueId kept = add(graph, log(graph, sum), shift, keep_dims ? hint : hint + ".kept");
  if (keep_dims) return kept;
  const Shape shape = graph.shape(x);
  return reshape(graph, kept, reduced_shape(shape, normalize_axes(axes, shape.rank()), false).dims(), hint);
}
ValueId softmax(Graph& graph, ValueId x, int64_t axis, const std::string& name) {
  return graph.add("softmax", {x}, {{"axis", axis}}, name);
}
ValueId log_softmax(Graph& graph, ValueId x, int64_t axis, const std::string& name) {
  return graph.add("log_softmax", {x}, {{"axis", axis}}, name);
}

ValueId sum_to_shape(Graph& graph, ValueId x, const Shape& shape) {
  const Shape from = graph.shape(x);
  if (from == shape) return x;
  check(broadcasts_to(shape, from), "sum_to_shape wants a shape that broadcasts to that of its operand");
  const int added = from.rank() - shape.rank();
  std::vector<int64_t> axes;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from[axis] != 1 && (axis < added || shape[axis - added] == 1)) axes.push_back(axis);
  const ValueId sum = axes.empty() ? x : reduce_sum(graph, x, axes, true);
  return graph.shape(sum) == shape ? sum : reshape(graph, sum, shape.dims());
}

}  // namespace weft::ops
