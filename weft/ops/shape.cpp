// Ops that move elements without arithmetic: reshape, transpose, broadcast, concat, slice, pad, cast, reorder,
// constant.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {

namespace {

using Dims = std::vector<int64_t>;

std::string print(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

bool has_negative(const Dims& dims) {
  return std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; });
}

OpDef mover(std::string name, std::string summary) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {"x"};
  op.outputs = {"y"};
  return op;
}

/// An attribute with one entry per axis of the operand.
const Dims& per_axis(const InferContext& context, const std::string& attribute) {
  const Dims& values = context.attributes.integers(attribute);
  if (static_cast<int>(values.size()) != context.shape(0).rank())
    context.fail(fmt::format("{}={} wants one entry per axis of {}, {}, got {}", attribute, print(values),
                             context.describe(0), context.shape(0).rank(), values.size()));
  return values;
}

/// The dimensions with a single -1 replaced by what is left of `elements`; unchanged where that is impossible.
Dims resolve(Dims dims, int64_t elements) {
  if (std::count(dims.begin(), dims.end(), -1) != 1) return dims;
  const auto open = std::find(dims.begin(), dims.end(), -1);
  Dims others(dims.begin(), open);
  others.insert(others.end(), open + 1, dims.end());
  if (!has_bounded_size(Shape(others))) return dims;
  const int64_t rest = Shape(others).elements();
  if (rest > 0 && elements % rest == 0) *open = elements / rest;
  return dims;
}

OpDef reshape_op() {
  OpDef op = mover("reshape", "The same elements, in row-major order, under another shape.");
  op.attributes = {required_attribute("shape", Dims{}, "the new dimensions; one may be -1: what is left")};
  op.precision = PrecisionRule::follow;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Dims& given = context.attributes.integers("shape");
    const Shape to(resolve(given, context.shape(0).elements()));
    if (has_negative(to.dims()) || !has_bounded_size(to) || to.elements() != context.shape(0).elements())
      context.fail(fmt::format("{} has {} elements, they do not fit shape={}; give dimensions with that product",
                               context.describe(0), context.shape(0).elements(), print(given)));
    return {{context.dtype(0), to, {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Dims dims = context.graph.shape(context.inputs[0]).dims();
    return {reshape(context.graph, context.output_gradients[0], dims)};
  };
  op.dimensions = [](const DimensionContext&) { return DimensionRule{.is_linear = true, .keeps_order = true}; };
  op.of_part = take_result_shape;
  op.is_view = true;
  op.examples = {
      {"flatten", {f32({2, 3, 2, 1})}, {{"shape", Dims{2, 6}}}, {}},
      {"open dimension", {f32({3, 5})}, {{"shape", Dims{5, -1}}}, {}},
      {"to rank 4", {f32({7})}, {{"shape", Dims{1, 7, 1, 1}}}, {}},
      {"scalar to vector", {f32({})}, {{"shape", Dims{1}}}, {}},
      {"vector to scalar", {f32({1})}, {{"shape", Dims{}}}, {}},
  };
  return op;
}

OpDef transpose_op() {
  OpDef op = mover("transpose", "Axis i of the result is axis permutation[i] of the operand.");
  op.attributes = {required_attribute("permutation", Dims{}, "each axis of the operand once")};
  op.precision = PrecisionRule::follow;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Dims& permutation = per_axis(context, "permutation");
    Dims sorted = permutation, dims;
    std::sort(sorted.begin(), sorted.end());
    for (size_t axis = 0; axis < sorted.size(); ++axis)
      if (sorted[axis] != static_cast<int64_t>(axis))
        context.fail(fmt::format("permutation={} must name each of the axes 0..{} of {} once", print(permutation),
                                 sorted.size() - 1, context.describe(0)));
    for (const int64_t axis : permutation) dims.push_back(context.shape(0)[static_cast<int>(axis)]);
    return {{context.dtype(0), Shape(std::move(dims)), {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Attributes attributes = attributes_of(context);
    const Dims& permutation = attributes.integers("permutation");
    Dims inverse(permutation.size());
    for (size_t axis = 0; axis < permutation.size(); ++axis)
      inverse[static_cast<size_t>(permutation[axis])] = static_cast<int64_t>(axis);
    return {transpose(context.graph, context.output_gradients[0], inverse)};
  };
  op.dimensions = [](const DimensionContext& context) {
    DimensionRule rule{.inputs = {count_up(context.inputs[0].shape.rank())}, .outputs = {{}}, .is_linear = true};
    for (const int64_t axis : context.attributes.integers("permutation"))
      rule.outputs[0].push_back(static_cast<int>(axis));
    return rule;
  };
  op.examples = {
      {"matrix", {f32({3, 5})}, {{"permutation", Dims{1, 0}}}, {}},
      {"rotation of three axes", {f32({2, 3, 4})}, {{"permutation", Dims{2, 0, 1}}}, {}},
      {"heads", {f32({2, 3, 2, 3})}, {{"permutation", Dims{0, 2, 1, 3}}}, {}},
      {"identity", {f32({7})}, {{"permutation", Dims{0}}}, {}},
  };
  return op;
}

OpDef broadcast_to_op() {
  OpDef op = mover("broadcast_to", "Repeats dimensions of 1, and new outer ones, up to a shape (NumPy's rules).");
  op.attributes = {required_attribute("shape", Dims{}, "the new dimensions")};
  op.precision = PrecisionRule::follow;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Shape to(context.attributes.integers("shape"));
    if (has_negative(to.dims())) context.fail(fmt::format("shape={} has a negative dimension", print(to.dims())));
    if (!broadcasts_to(context.shape(0), to))
      context.fail(
          fmt::format("{} does not broadcast to shape={}: aligned at the last axis, its dimensions must be "
                      "equal or 1",
                      context.describe(0), print(to.dims())));
    return {{context.dtype(0), to, {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Shape shape = context.graph.shape(context.inputs[0]);
    return {sum_to_shape(context.graph, context.output_gradients[0], shape)};
  };
  op.dimensions = elementwise_dimensions;
  op.of_part = take_result_shape;
  op.examples = {
      {"scalar", {f32({})}, {{"shape", Dims{2, 3}}}, {}},
      {"vector to rows", {f32({5})}, {{"shape", Dims{3, 5}}}, {}},
      {"column", {f32({3, 1})}, {{"shape", Dims{3, 4}}}, {}},
      {"per channel", {f32({1, 3, 1, 1})}, {{"shape", Dims{2, 3, 2, 2}}}, {}},
      {"ones in front", {f32({2, 1})}, {{"shape", Dims{1, 2, 3}}}, {}},
  };
  return op;
}

OpDef concat_op() {
  OpDef op = mover("concat", "Joins tensors along an axis in which alone they may differ.");
  op.inputs = {"x..."};
  op.attributes = {required_attribute("axis", int64_t{0}, "the axis, from 0")};
  op.precision = PrecisionRule::follow;
  op.layout_rule = LayoutRule::kernel;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Shape& first = context.shape(0);
    const int64_t axis = context.attributes.integer("axis");
    if (axis < 0 || axis >= first.rank())
      context.fail(fmt::format("axis {} is not an axis of {}; {}", axis, context.describe(0),
                               first.rank() == 0 ? "a scalar has none, reshape it to [1]"
                                                 : fmt::format("give one of 0..{}", first.rank() - 1)));
    int64_t total = 0;
    for (int input = 0; input < context.input_count(); ++input) {
      context.require_dtype(input, context.dtype(0));
      Shape shape = context.shape(input);
      const bool same_rank = shape.rank() == first.rank();
      if (same_rank) {
        total += shape[static_cast<int>(axis)];
        shape[static_cast<int>(axis)] = first[static_cast<int>(axis)];
      }
      if (!same_rank || shape != first)
        context.fail(fmt::format("{} and {} must be equal in every axis but {}", context.describe(0),
                                 context.describe(input), axis));
    }
    Shape joined = first;
    joined[static_cast<int>(axis)] = total;
    return {{context.dtype(0), joined, {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    Graph& graph = context.graph;
    const size_t axis = static_cast<size_t>(attributes_of(context).integer("axis"));
    const Dims whole = graph.shape(context.outputs[0]).dims();
    Dims starts(whole.size(), 0), ends = whole;
    std::vector<ValueId> gradients;
    int64_t at = 0;
    for (const ValueId input : context.inputs) {
      starts[axis] = at;
      at += graph.shape(input).dims()[axis];
      ends[axis] = at;
      gradients.push_back(slice(graph, context.output_gradients[0], starts, ends));
    }
    return gradients;
  };
  op.dimensions = [](const DimensionContext& context) {
    DimensionRule rule = same_but(context, {static_cast<int>(context.attributes.integer("axis"))});
    rule.is_linear = true;
    return rule;
  };
  op.examples = {
      {"vectors", {f32({3}), f32({4})}, {{"axis", int64_t{0}}}, {}},
      {"columns of three", {f32({2, 3}), f32({2, 1}), f32({2, 2})}, {{"axis", int64_t{1}}}, {}},
      {"channels", {f32({2, 3, 2, 1}), f32({2, 1, 2, 1})}, {{"axis", int64_t{1}}}, {}},
      {"one operand", {f32({3, 2, 2})}, {{"axis", int64_t{2}}}, {}},
      {"an empty operand", {f32({2, 3}), f32({2, 0}), f32({2, 4})}, {{"axis", int64_t{1}}}, {}},
  };
  return op;
}

OpDef slice_op() {
  OpDef op = mover("slice", "The elements from starts up to, not with, ends, one pair per axis.");
  op.attributes = {required_attribute("starts", Dims{}, "first index per axis"),
                   required_attribute("ends", Dims{}, "one past the last index per axis")};
  op.precision = PrecisionRule::follow;
  op.layout_rule = LayoutRule::kernel;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Dims &starts = per_axis(context, "starts"), &ends = per_axis(context, "ends");
    Shape shape = context.shape(0);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int64_t start = starts[static_cast<size_t>(axis)], end = ends[static_cast<size_t>(axis)];
      if (start < 0 || start > end || end > shape[axis])
        context.fail(fmt::format("axis {}: [{},{}) is no range within {}; give 0 <= start <= end <= {}", axis, start,
                                 end, context.describe(0), shape[axis]));
      shape[axis] = end - start;
    }
    return {{context.dtype(0), shape, {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Attributes attributes = attributes_of(context);
    Dims high = context.graph.shape(context.inputs[0]).dims();
    for (size_t axis = 0; axis < high.size(); ++axis) high[axis] -= attributes.integers("ends")[axis];
    return {pad(context.graph, context.output_gradients[0], attributes.integers("starts"), high)};
  };
  op.dimensions = [](const DimensionContext& context) {
    DimensionRule rule = elementwise_dimensions(context);  // the label of an axis that is not cut
    for (size_t axis = 0; axis < rule.outputs[0].size(); ++axis)
      if (rule.inputs[0][axis] == DimensionRule::kWhole) rule.outputs[0][axis] = DimensionRule::kWhole;
    rule.is_linear = true;
    return rule;
  };
  op.of_part = [](Attributes& attributes, const PartContext& context) {
    Dims ends = attributes.integers("ends");
    for (size_t axis = 0; axis < ends.size(); ++axis) {
      const auto dimension = static_cast<int>(axis);
      if (context.inputs[0][dimension] != context.whole.inputs[0].shape[dimension])
        ends[axis] = context.inputs[0][dimension];
    }
    attributes.set("ends", ends);
  };
  op.examples = {
      {"middle of a vector", {f32({7})}, {{"starts", Dims{2}}, {"ends", Dims{5}}}, {}},
      {"columns", {f32({3, 5})}, {{"starts", Dims{0, 3}}, {"ends", Dims{3, 5}}}, {}},
      {"one row", {f32({2, 3, 4})}, {{"starts", Dims{1, 0, 0}}, {"ends", Dims{2, 3, 4}}}, {}},
      {"rank 4", {f32({2, 3, 3, 2})}, {{"starts", Dims{0, 1, 1, 0}}, {"ends", Dims{1, 3, 2, 2}}}, {}},
      {"nothing", {f32({2, 3})}, {{"starts", Dims{0, 1}}, {"ends", Dims{2, 1}}}, {}},
  };
  return op;
}

/// The attribute "value", where it is an integer that no double equals, must be one of the dtype.
void require_exact_value(const InferContext& context, DType dtype) {
  const auto whole = context.attributes.exact_integer("value");
  if (whole && dtype != DType::i64 && !(dtype == DType::u64 && *whole > 0))
    context.fail(
        fmt::format("value {} is no number of {}; give i64, or a number that it holds", *whole, name_of(dtype)));
}

OpDef pad_op() {
  OpDef op = mover("pad", "Adds elements of one value before and after each axis.");
  op.attributes = {required_attribute("low", Dims{}, "elements added before, per axis"),
                   required_attribute("high", Dims{}, "elements added after, per axis"),
                   attribute("value", 0.0, "what is added")};
  op.attributes.back().keeps_integers = true;
  op.precision = PrecisionRule::follow;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Dims &low = per_axis(context, "low"), &high = per_axis(context, "high");
    require_exact_value(context, context.dtype(0));
    Shape shape = context.shape(0);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int64_t before = low[static_cast<size_t>(axis)], after = high[static_cast<size_t>(axis)];
      if (before < 0 || after < 0 || before > kMostElements || after > kMostElements)
        context.fail(fmt::format("low={} high={} cannot pad {}; padding is not negative (use slice to cut) nor endless",
                                 print(low), print(high), context.describe(0)));
      shape[axis] += before + after;
    }
    return {{context.dtype(0), shape, {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Attributes attributes = attributes_of(context);
    const Dims& low = attributes.integers("low");
    Dims ends = context.graph.shape(context.inputs[0]).dims();
    for (size_t axis = 0; axis < ends.size(); ++axis) ends[axis] += low[axis];
    return {slice(context.graph, context.output_gradients[0], low, ends)};
  };
  op.dimensions = [](const DimensionContext& context) {
    DimensionRule rule = elementwise_dimensions(context);  // the label of an axis to which nothing is added
    for (size_t axis = 0; axis < rule.outputs[0].size(); ++axis)
      if (rule.inputs[0][axis] == DimensionRule::kWhole) rule.outputs[0][axis] = DimensionRule::kWhole;
    return rule;
  };
  op.examples = {
      {"vector", {f32({5})}, {{"low", Dims{2}}, {"high", Dims{1}}}, {}},
      {"after only, of ones", {f32({3, 2})}, {{"low", Dims{0, 0}}, {"high", Dims{1, 2}}, {"value", 1.0}}, {}},
      {"image", {f32({2, 1, 3, 2})}, {{"low", Dims{0, 0, 1, 1}}, {"high", Dims{0, 0, 1, 0}}}, {}},
      {"nothing", {f32({3})}, {{"low", Dims{0}}, {"high", Dims{0}}}, {}},
  };
  return op;
}

OpDef cast_op() {
  OpDef op =
      mover("cast", "The same numbers as another type, in any layout; what becomes an integer is cut toward zero.");
  op.attributes = {attribute("dtype", "f32", std::string(dtype_names()))};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    return {{require_dtype_name(context), context.shape(0), {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const DType from = context.graph.type(context.inputs[0]).dtype;
    if (!is_floating(from)) return {ValueId{}};
    return {cast(context.graph, context.output_gradients[0], from)};
  };
  op.layout_rule = LayoutRule::kernel;
  op.dimensions = [](const DimensionContext& context) {
    DimensionRule rule = elementwise_dimensions(context);
    rule.is_linear = is_floating(context.inputs[0].dtype) && is_floating(context.outputs[0].dtype);
    return rule;
  };
  op.examples = {
      {"labels to reals", {i32({7})}, {}, {{-5, 6}}},
      {"wide integers to reals", {{DType::i64, {2, 3}, {}}}, {}, {{0, 100}}},
      {"bytes to reals", {{DType::u8, {2, 1, 3, 3}, {}}}, {}, {{0, 256}}},
      {"nothing to do", {f32({3, 5})}, {}, {}},
  };
  return op;
}

OpDef reorder_op() {
  OpDef op = mover("reorder", "The same tensor in another physical layout, which the graph gives its result.");
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    return {{context.dtype(0), context.shape(0), {}}};
  };
  // Passes add reorders after differentiation; a gradient has the same logical shape and takes any layout.
  op.gradient = [](GradContext& context) -> std::vector<ValueId> { return {context.output_gradients[0]}; };
  op.layout_rule = LayoutRule::kernel;
  op.examples = {
      {"vector", {f32({7})}, {}, {}},
      {"matrix", {f32({3, 5})}, {}, {}},
      {"image", {f32({2, 3, 3, 2})}, {}, {}},
  };
  return op;
}

OpDef constant_op() {
  OpDef op = mover("constant", "A tensor full of one value.");
  op.inputs = {};
  op.attributes = {required_attribute("shape", Dims{}, "the dimensions; []: a scalar"),
                   attribute("value", 0.0, "of every element"), attribute("dtype", "f32", std::string(dtype_names()))};
  op.attributes[1].keeps_integers = true;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Dims& dims = context.attributes.integers("shape");
    if (has_negative(dims)) context.fail(fmt::format("shape={} has a negative dimension", print(dims)));
    const DType dtype = require_dtype_name(context);
    require_exact_value(context, dtype);
    return {{dtype, Shape(dims), {}}};
  };
  op.gradient = [](GradContext&) -> std::vector<ValueId> { return {}; };
  op.dimensions = elementwise_dimensions;
  op.of_part = take_result_shape;
  op.examples = {
      {"scalar", {}, {{"shape", Dims{}}, {"value", 0.5}}, {}},
      {"matrix", {}, {{"shape", Dims{3, 5}}, {"value", -2.0}}, {}},
      {"integers", {}, {{"shape", Dims{7}}, {"value", 3.0}, {"dtype", "i32"}}, {}},
  };
  return op;
}

}  // namespace

void add_shape_ops(OpRegistry& registry) {
  registry.add(reshape_op());
  registry.add(of_work(work::kCopies, transpose_op()));
  registry.add(of_work(work::kCopies, broadcast_to_op()));
  registry.add(of_work(work::kCopies, concat_op()));
  registry.add(of_work(work::kCopies, slice_op()));
  registry.add(of_work(work::kCopies, pad_op()));
  registry.add(of_work(work::kCasts, cast_op()));
  registry.add(of_work(work::kReorders, reorder_op()));
  registry.add(of_work(work::kCopies, constant_op()));
}

ValueId reshape(Graph& graph, ValueId x, std::vector<int64_t> shape, const std::string& name) {
  return graph.add("reshape", {x}, {{"shape", resolve(std::move(shape), graph.shape(x).elements())}}, name);
}
ValueId transpose(Graph& graph, ValueId x, std::vector<int64_t> permutation, const std::string& name) {
  return graph.add("transpose", {x}, {{"permutation", std::move(permutation)}}, name);
}
ValueId broadcast_to(Graph& graph, ValueId x, const Shape& shape, const std::string& name) {
  return graph.add("broadcast_to", {x}, {{"shape", shape.dims()}}, name);
}
ValueId concat(Graph& graph, const std::vector<ValueId>& xs, int64_t axis, const std::string& name) {
  // One out of range stays as it is, for the shape rule to report.
  const int rank = xs.empty() ? 0 : graph.shape(xs.front()).rank();
  return graph.add("concat", xs, {{"axis", int64_t{normalize_axis(axis, rank).value_or(static_cast<int>(axis))}}},
                   name);
}
ValueId slice(Graph& graph, ValueId x, std::vector<int64_t> starts, std::vector<int64_t> ends,
              const std::string& name) {
  return graph.add("slice", {x}, {{"starts", std::move(starts)}, {"ends", std::move(ends)}}, name);
}
std::vector<ValueId> split_sizes(Graph& graph, ValueId x, const std::vector<int64_t>& sizes, int64_t axis,
                                 const std::string& name) {
  const std::string hint = name.empty() ? "split" : name;
  const Shape shape = graph.shape(x);
  const auto normal = normalize_axis(axis, shape.rank());
  int64_t total = 0;
  for (const int64_t size : sizes) total += size;
  if (!normal || total != shape[*normal])
    fail(ErrorKind::shape, "[split] '{}': sizes {} do not add up to axis {} of '{}' {}", hint, print(sizes), axis,
         graph.value(x).name, to_string(shape));
  Dims starts(static_cast<size_t>(shape.rank()), 0), ends = shape.dims();
  std::vector<ValueId> parts;
  int64_t at = 0;
  for (const int64_t size : sizes) {
    starts[static_cast<size_t>(*normal)] = at;
    ends[static_cast<size_t>(*normal)] = at += size;
    parts.push_back(slice(graph, x, starts, ends, hint));
  }
  return parts;
}
std::vector<ValueId> split(Graph& graph, ValueId x, int64_t parts, int64_t axis, const std::string& name) {
  const Shape& shape = graph.shape(x);
  const auto normal = normalize_axis(axis, shape.rank());
  if (!normal || parts < 1 || shape[*normal] % parts != 0)
    fail(ErrorKind::shape, "[split] '{}': axis {} of '{}' {} does not fall into {} equal parts", name, axis,
         graph.value(x).name, to_string(shape), parts);
  return split_sizes(graph, x, Dims(static_cast<size_t>(parts), shape[*normal] / parts), axis, name);
}
ValueId pad(Graph& graph, ValueId x, std::vector<int64_t> low, std::vector<int64_t> high, double value,
            const std::string& name) {
  return graph.add("pad", {x}, {{"low", std::move(low)}, {"high", std::move(high)}, {"value", value}}, name);
}
ValueId cast(Graph& graph, ValueId x, DType dtype, const std::string& name) {
  return graph.add("cast", {x}, {{"dtype", std::string(name_of(dtype))}}, name);
}
ValueId reorder(Graph& graph, ValueId x, const Layout& layout, const std::string& name) {
  const ValueId result = graph.add("reorder", {x}, {}, name);
  graph.set_layout(result, layout);
  return result;
}
ValueId constant(Graph& graph, const Shape& shape, double value, const std::string& name) {
  return graph.add("constant", {}, {{"shape", shape.dims()}, {"value", value}}, name);
}
ValueId constant(Graph& graph, DType dtype, const Shape& shape, int64_t value, const std::string& name) {
  const Attributes attributes{{"shape", shape.dims()}, {"value", value}, {"dtype", std::string(name_of(dtype))}};
  return graph.add("constant", {}, attributes, name);
}

}  // namespace weft::ops
