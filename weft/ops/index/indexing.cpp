// Ops that compute or follow indices: gather, one-hot, the place of the largest element, and running sums along an
// axis.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

/// The shape with another size along one axis.
Shape resized(Shape shape, int axis, int64_t size) {
  shape[axis] = size;
  return shape;
}

void require_index_dtype(const InferContext& context, int input) {
  if (context.dtype(input) != DType::i64) context.require_dtype(input, DType::i32);
}

/// Indices (operand 1) of the shape of operand 0 but along the axis.
int require_indices(const InferContext& context) {
  const int axis = require_axis(context, 0, context.attributes.integer("axis"));
  const Shape &x = context.shape(0), &indices = context.shape(1);
  if (indices.rank() != x.rank() || resized(indices, axis, x[axis]) != x)
    context.fail(
        fmt::format("{} and {} must be equal in every axis but {}", context.describe(1), context.describe(0), axis));
  return axis;
}

AttributeSpec axis_attribute(const char* help) { return attribute("axis", int64_t{-1}, help); }

OpDef gather_op() {
  OpDef op;
  op.name = "gather";
  op.summary = "Along an axis, the elements that the indices name, each from its own row (as torch.gather).";
  op.inputs = {"x", "indices"};
  op.outputs = {"y"};
  op.attributes = {axis_attribute("the axis along which indices count, negative from the end")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_index_dtype(context, 1);
    require_indices(context);
    return {typed(context.dtype(0), context.shape(1))};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    Graph& graph = context.graph;
    const Shape& x = graph.shape(context.inputs[0]);
    const int axis = normalize_axis(attributes_of(context).integer("axis"), x.rank()).value();
    const Attributes attributes{{"axis", int64_t{axis}}, {"size", x[axis]}};
    const ValueId indices = as_dtype(graph, context.inputs[1], DType::i32);
    return {
        graph.add("gather_backward", {context.output_gradients[0], indices}, attributes, gradient_name(context, "x")),
        ValueId{}};
  };
  op.examples = {
      {"one of each row", {f32({3, 5}), i32({3, 1})}, {}, {{}, {0, 5}}},
      {"more than there are, repeated", {f32({4, 3}), i32({4, 7})}, {{"axis", int64_t{1}}}, {{}, {0, 3}}},
      {"first axis", {f32({5, 2, 3}), i32({4, 2, 3})}, {{"axis", int64_t{0}}}, {{}, {0, 5}}},
      {"middle axis", {f32({2, 5, 3}), i32({2, 2, 3})}, {{"axis", int64_t{-2}}}, {{}, {0, 5}}},
      {"vector", {f32({7}), i32({17})}, {}, {{}, {0, 7}}},
  };
  return op;
}

OpDef gather_backward_op() {
  OpDef op;
  op.name = "gather_backward";
  op.summary = "Gradient of gather: adds each number to the element that its index names (scatter-add).";
  op.inputs = {"output_gradient", "indices"};
  op.outputs = {"x_gradient"};
  op.attributes = {axis_attribute("the axis along which indices count, negative from the end"),
                   required_attribute("size", int64_t{8}, "of the result along the axis")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::f32);
    context.require_dtype(1, DType::i32);
    const int axis = require_indices(context);
    context.require_same_shape(0, 1);
    const int64_t size = context.attributes.integer("size");
    if (size < 1) context.fail(fmt::format("size must be at least 1, got {}", size));
    return {f32(resized(context.shape(0), axis, size))};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    return {gather(context.graph, context.output_gradients[0], context.inputs[1],
                   attributes_of(context).integer("axis"), gradient_name(context, "output_gradient")),
            ValueId{}};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.examples = {
      {"one of each row", {f32({3, 1}), i32({3, 1})}, {{"size", int64_t{5}}}, {{}, {0, 5}}},
      {"repeated", {f32({4, 7}), i32({4, 7})}, {{"size", int64_t{3}}}, {{}, {0, 3}}},
      {"first axis", {f32({4, 2, 3}), i32({4, 2, 3})}, {{"axis", int64_t{0}}, {"size", int64_t{5}}}, {{}, {0, 5}}},
      {"middle axis", {f32({2, 6, 3}), i32({2, 6, 3})}, {{"axis", int64_t{1}}, {"size", int64_t{4}}}, {{}, {0, 4}}},
  };
  return op;
}

/// Not differentiable: the function `take` composes what is to be.
OpDef take_op() {
  OpDef op;
  op.name = "take";
  op.summary =
      "Slices along an axis, in the order that the indices say (numpy.take); negative ones count from the end.";
  op.inputs = {"x", "indices"};
  op.outputs = {"y"};
  op.attributes = {attribute("axis", int64_t{0}, "the axis that is replaced by those of the indices")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_index_dtype(context, 1);
    const Shape& x = context.shape(0);
    const int axis = require_axis(context, 0, context.attributes.integer("axis"));
    std::vector<int64_t> dims(x.begin(), x.begin() + axis);
    dims.insert(dims.end(), context.shape(1).begin(), context.shape(1).end());
    dims.insert(dims.end(), x.begin() + axis + 1, x.end());
    return {typed(context.dtype(0), Shape(std::move(dims)))};
  };
  op.examples = {
      {"entries of a shape", {i64({4}), i64({2})}, {}, {{-100, 100}, {-4, 4}}},
      {"one entry", {i64({4}), i64({})}, {}, {{-100, 100}, {0, 4}}},
      {"columns", {f32({3, 5}), i32({2, 2})}, {{"axis", int64_t{-1}}}, {{}, {0, 5}}},
      {"bytes of the middle axis", {typed(DType::u8, {2, 5, 3}), i64({7})}, {{"axis", int64_t{1}}}, {{0, 256}, {0, 5}}},
  };
  return op;
}

OpDef one_hot_op() {
  OpDef op;
  op.name = "one_hot";
  op.summary = "A new last axis with 1 at the index and 0 elsewhere; all 0 where the index is no class.";
  op.inputs = {"indices"};
  op.outputs = {"y"};
  op.attributes = {required_attribute("classes", int64_t{10}, "size of the new axis")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::i32);
    const int64_t classes = context.attributes.integer("classes");
    if (classes < 1) context.fail(fmt::format("classes must be at least 1, got {}", classes));
    std::vector<int64_t> dims = context.shape(0).dims();
    dims.push_back(classes);
    return {f32(Shape(std::move(dims)))};
  };
  op.gradient = [](GradContext&) -> std::vector<ValueId> { return {ValueId{}}; };
  op.examples = {
      {"labels", {i32({7})}, {{"classes", int64_t{5}}}, {{0, 5}}},
      {"map of labels", {i32({2, 3, 3})}, {{"classes", int64_t{4}}}, {{0, 4}}},
      {"one number", {i32({})}, {{"classes", int64_t{3}}}, {{0, 3}}},
      {"some that are no class", {i32({33})}, {{"classes", int64_t{2}}}, {{-2, 4}}},
  };
  return op;
}

OpDef argmax_op() {
  OpDef op;
  op.name = "argmax";
  op.summary = "Index (i32) of the first largest element along an axis; a NaN counts as the largest.";
  op.inputs = {"x"};
  op.outputs = {"indices"};
  op.attributes = {axis_attribute("the axis that is searched, negative from the end"),
                   attribute("keep_dims", false, "leave the axis in the shape, as 1")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_number(0);
    const int axis = require_axis(context, 0, context.attributes.integer("axis"));
    if (context.shape(0)[axis] < 1) context.fail(fmt::format("axis {} of {} is empty", axis, context.describe(0)));
    std::vector<int64_t> dims = resized(context.shape(0), axis, 1).dims();
    if (!context.attributes.boolean("keep_dims")) dims.erase(dims.begin() + axis);
    return {i32(Shape(std::move(dims)))};
  };
  op.gradient = [](GradContext&) -> std::vector<ValueId> { return {ValueId{}}; };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.examples = {
      {"rows", {f32({3, 5})}, {}, {{-1, 1, true}}},
      {"channels, kept", {f32({2, 5, 3, 2})}, {{"axis", int64_t{1}}, {"keep_dims", true}}, {{-1, 1, true}}},
      {"first axis", {f32({6, 4})}, {{"axis", int64_t{0}}}, {{-1, 1, true}}},
      {"vector", {f32({33})}, {}, {{-1, 1, true}}},
      {"ties", {f32({2, 7})}, {}, {{1, 1}}},
  };
  return op;
}

OpDef cumulative_sum_op() {
  OpDef op;
  op.name = "cumulative_sum";
  op.summary = "The sum of all elements up to each one along an axis; of integers it wraps around.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {axis_attribute("the axis along which it runs, negative from the end"),
                   attribute("reverse", false, "runs from the end to the beginning"),
                   attribute("exclusive", false, "leaves out the element itself: begins with 0")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const DType dtype = context.require_number(0);
    require_axis(context, 0, context.attributes.integer("axis"));
    return {typed(dtype, context.shape(0))};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    Attributes attributes = attributes_of(context);
    attributes.set("reverse", !attributes.boolean("reverse"));
    return {
        context.graph.add("cumulative_sum", {context.output_gradients[0]}, attributes, gradient_name(context, "x"))};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.in_place = {{0, 0}};
  op.examples = {
      {"vector", {f32({7})}, {}, {}},
      {"columns", {f32({5, 3})}, {{"axis", int64_t{0}}}, {}},
      {"backwards", {f32({3, 5})}, {{"reverse", true}}, {}},
      {"exclusive, middle axis", {f32({2, 4, 3})}, {{"axis", int64_t{1}}, {"exclusive", true}}, {}},
      {"exclusive, backwards", {f32({2, 17})}, {{"reverse", true}, {"exclusive", true}}, {}},
  };
  return op;
}

}  // namespace

void add_indexing_ops(OpRegistry& registry) {
  registry.add(of_work(work::kLookUps, gather_op()));
  registry.add(of_work(work::kLookUps, gather_backward_op()));
  registry.add(of_work(work::kLookUps, take_op()));
  registry.add(of_work(work::kLookUps, one_hot_op()));
  registry.add(of_work(work::kReductions, argmax_op()));
  registry.add(of_work(work::kReductions, cumulative_sum_op()));
}

ValueId gather(Graph& graph, ValueId x, ValueId indices, int64_t axis, const std::string& name) {
  return graph.add("gather", {x, indices}, {{"axis", axis}}, name);
}

ValueId take(Graph& graph, ValueId x, ValueId indices, int64_t axis, const std::string& name) {
  const std::string hint = name.empty() ? "take" : name;
  const Shape shape = graph.shape(x), wanted = graph.shape(indices);
  if (graph.type(x).dtype != DType::f32) return graph.add("take", {x, indices}, {{"axis", axis}}, hint);
  indices = as_dtype(graph, indices, DType::i32);
  const auto normal = normalize_axis(axis, shape.rank());
  if (!normal)
    fail(ErrorKind::shape, "[take] '{}': axis {} is not an axis of '{}' {}", hint, axis, graph.value(x).name,
         to_string(shape));
  // As [outer, size, inner]: rows of a table of `size`, which `embedding` looks up.
  int64_t outer = 1, inner = 1;
  for (int at = 0; at < *normal; ++at) outer *= shape[at];
  for (int at = *normal + 1; at < shape.rank(); ++at) inner *= shape[at];
  ValueId table = reshape(graph, x, {outer, shape[*normal], inner});
  if (outer != 1) table = transpose(graph, table, {1, 0, 2});
  ValueId rows = embedding(graph, reshape(graph, table, {shape[*normal], outer * inner}),
                           reshape(graph, indices, {wanted.elements()}));
  if (outer != 1) rows = transpose(graph, reshape(graph, rows, {wanted.elements(), outer, inner}), {1, 0, 2});
  std::vector<int64_t> dims(shape.begin(), shape.begin() + *normal);
  dims.insert(dims.end(), wanted.begin(), wanted.end());
  dims.insert(dims.end(), shape.begin() + *normal + 1, shape.end());
  return reshape(graph, rows, dims, hint);
}

ValueId one_hot(Graph& graph, ValueId indices, int64_t classes, const std::string& name) {
  return graph.add("one_hot", {indices}, {{"classes", classes}}, name);
}
ValueId argmax(Graph& graph, ValueId x, int64_t axis, bool keep_dims, const std::string& name) {
  return graph.add("argmax", {x}, {{"axis", axis}, {"keep_dims", keep_dims}}, name);
}
ValueId argmin(Graph& graph, ValueId x, int64_t axis, bool keep_dims, const std::string& name) {
  return argmax(graph, negate(graph, x), axis, keep_dims, name.empty() ? "argmin" : name);
}
ValueId cumulative_sum(Graph& graph, ValueId x, int64_t axis, bool reverse, bool exclusive, const std::string& name) {
  return graph.add("cumulative_sum", {x}, {{"axis", axis}, {"reverse", reverse}, {"exclusive", exclusive}}, name);
}

}  // namespace weft::ops
