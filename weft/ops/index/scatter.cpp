// Updates at places that indices name, as ONNX's ScatterElements and ScatterND, and GatherND, the inverse of the
// latter.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

AttributeSpec reduction_attribute() {
  return attribute("reduction", "none",
                   "how an update joins what is there: none (it takes its place), add, multiply, maximum, minimum");
}

void require_index_type(const InferContext& context) {
  if (context.dtype(1) != DType::i64) context.require_dtype(1, DType::i32);
}

/// Updates of the data's type, by a reduction that it has.
void require_updates(const InferContext& context) {
  static const std::vector<std::string> known{"none", "add", "multiply", "maximum", "minimum"};
  const std::string& reduction = context.attributes.text("reduction");
  if (std::find(known.begin(), known.end(), reduction) == known.end())
    context.fail(fmt::format("reduction \"{}\" is not known{}", reduction, suggestion(reduction, known)));
  if (reduction != "none") context.require_number(0);
  require_index_type(context);
  context.require_dtype(2, context.dtype(0));
}

Shape part_of(const Shape& shape, int begin, int end) {
  return Shape(std::vector<int64_t>(shape.begin() + begin, shape.begin() + end));
}

Shape joined(const Shape& first, const Shape& second) {
  std::vector<int64_t> dims = first.dims();
  dims.insert(dims.end(), second.begin(), second.end());
  return Shape(std::move(dims));
}

/// The shapes around the vectors of indices (operand 1) into the data (operand 0).
struct SlicePlaces {
  Shape chosen_from;  // of the data, the dimensions that batches and vectors walk
  Shape count;        // of the indices but their last axis: one vector each
  Shape slice;        // of the data, what a vector names
};

SlicePlaces slice_places(const Shape& data, const Shape& indices, int64_t batch_dims) {
  const int last = indices.rank() - 1, walked = static_cast<int>(batch_dims + indices[last]);
  return {part_of(data, 0, walked), part_of(indices, 0, last), part_of(data, walked, data.rank())};
}

SlicePlaces require_slice_places(const InferContext& context) {
  require_index_type(context);
  const Shape &data = context.shape(0), &indices = context.shape(1);
  const int64_t batch_dims = context.attributes.integer("batch_dims");
  for (const int operand : {0, 1})
    if (context.shape(operand).rank() < 1)
      context.fail(fmt::format("{} is a scalar and has no axes to walk; reshape it", context.describe(operand)));
  const int64_t most = std::min(data.rank(), indices.rank()) - 1, length = indices[indices.rank() - 1];
  if (batch_dims < 0 || batch_dims > most)
    context.fail(fmt::format("batch_dims={} of {} and {}; give a number from 0 to {}", batch_dims, context.describe(0),
                             context.describe(1), most));
  if (length < 1 || length > data.rank() - batch_dims)
    context.fail(fmt::format("the vectors in {} name slices of {} by {} indices each; give 1 to {}",
                             context.describe(1), context.describe(0), length, data.rank() - batch_dims));
  const int batches = static_cast<int>(batch_dims);
  if (part_of(data, 0, batches) != part_of(indices, 0, batches))
    context.fail(fmt::format("{} and {} differ in their first {} dimensions, the batches", context.describe(0),
                             context.describe(1), batch_dims));
  return slice_places(data, indices, batch_dims);
}

AttributeSpec batch_dims_attribute() {
  return attribute("batch_dims", int64_t{0}, "leading dimensions of the data that the indices have, too");
}

ValueId boolean_ones(Graph& graph, const Shape& shape) { return constant(graph, DType::boolean, shape, 1); }
ValueId zeros(Graph& graph, const TensorType& type) { return constant(graph, type.dtype, type.shape, 0); }

/// 1, 2, ... for the updates: 0 is what a gather finds out of range.
ValueId numbered(Graph& graph, const Shape& shape) {
  return reshape(graph, iota(graph, DType::i64, shape.elements(), 1), shape.dims());
}

/// The reduction, of which a gradient is known; Error(usage) for others.
std::string differentiable_reduction(const GradContext& context) {
  const std::string reduction = attributes_of(context).text("reduction");
  if (reduction != "none" && reduction != "add")
    fail(ErrorKind::usage,
         "[{}] '{}': reduction=\"{}\" has no gradient, those of none and add have; keep it out of the loss",
         context.graph.node(context.node).op->name, context.graph.node_name(context.node), reduction);
  return reduction;
}

/// Which updates the result holds: those whose number is found where they went. Others were written over.
template <typename Scatter, typename Gather>
ValueId arrived(Graph& graph, const std::string& reduction, const Shape& targets, const Shape& updates,
                Scatter&& scatter, Gather&& gather) {
  if (reduction == "add") return gather(boolean_ones(graph, targets));  // all that are in range
  const ValueId numbers = numbered(graph, updates);
  const ValueId last = scatter(constant(graph, DType::i64, targets, 0), numbers);
  return equal(graph, gather(last), numbers);
}

std::vector<ValueId> scatter_elements_gradient(GradContext& context) {
  Graph& graph = context.graph;
  const std::string reduction = differentiable_reduction(context);
  const int64_t axis = attributes_of(context).integer("axis");
  const ValueId dy = context.output_gradients[0], indices = context.inputs[1];
  const TensorType data = graph.type(context.inputs[0]), updates = graph.type(context.inputs[2]);
  const ValueId data_gradient = reduction == "add" ? dy
                                                   : scatter_elements(graph, dy, indices, zeros(graph, updates), axis,
                                                                      "none", gradient_name(context, "data"));
  const ValueId counts = arrived(
      graph, reduction, data.shape, updates.shape,
      [&](ValueId into, ValueId numbers) { return scatter_elements(graph, into, indices, numbers, axis); },
      [&](ValueId from) { return gather_elements(graph, from, indices, axis); });
  const ValueId gathered = gather_elements(graph, dy, indices, axis);
  return {data_gradient, ValueId{},
          where(graph, counts, gathered, constant(graph, updates.dtype, {}, 0), gradient_name(context, "updates"))};
}

OpDef scatter_elements_op() {
  OpDef op;
  op.name = "scatter_elements";
  op.summary =
      "The data with each update at the place that its index names along an axis, counted from the end where negative; "
      "one whose index is out of range is left out.";
  op.inputs = {"data", "indices", "updates"};
  op.outputs = {"y"};
  op.attributes = {attribute("axis", int64_t{-1}, "the axis along which indices count, negative from the end"),
                   reduction_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const int axis = require_axis(context, 0, context.attributes.integer("axis"));
    require_updates(context);
    context.require_same_shape(1, 2);
    const Shape &data = context.shape(0), &indices = context.shape(1);
    bool fits = indices.rank() == data.rank();
    for (int at = 0; fits && at < data.rank(); ++at) fits = at == axis || indices[at] <= data[at];
    if (!fits)
      context.fail(fmt::format("{} must have the rank of {}, and be no larger in any axis but {}", context.describe(1),
                               context.describe(0), axis));
    return {typed(context.dtype(0), data)};
  };
  op.gradient = scatter_elements_gradient;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[1].elements(); };
  op.in_place = {{0, 0}};
  const std::string add = "add";
  op.examples = {
      {"rows", {f32({3, 5}), i32({3, 2}), f32({3, 2})}, {}, {{}, {-5, 5}}},
      {"places met twice", {f32({3, 2}), i64({7, 2}), f32({7, 2})}, {{"axis", int64_t{0}}}, {{}, {0, 3}}},
      {"added up", {f32({3}), i64({9}), f32({9})}, {{"reduction", add}}, {{}, {-3, 3}}},
      {"added to the middle axis of a part",
       {f32({2, 5, 3}), i32({1, 4, 2}), f32({1, 4, 2})},
       {{"axis", int64_t{1}}, {"reduction", add}},
       {{}, {0, 5}}},
      {"some out of range", {f32({4}), i32({6}), f32({6})}, {{"reduction", add}}, {{}, {-6, 6}}},
      {"some out of range, written over", {f32({4}), i32({6}), f32({6})}, {}, {{}, {-6, 6}}},
      {"product", {i64({4}), i32({7}), i64({7})}, {{"reduction", std::string("multiply")}}, {{1, 9}, {0, 4}, {1, 9}}},
      {"largest", {i64({4}), i32({7}), i64({7})}, {{"reduction", std::string("maximum")}}, {{0, 9}, {0, 4}, {0, 99}}},
      {"smallest", {i64({4}), i32({7}), i64({7})}, {{"reduction", std::string("minimum")}}, {{0, 9}, {0, 4}, {0, 9}}},
  };
  return op;
}

std::vector<ValueId> gather_nd_gradient(GradContext& context) {
  Graph& graph = context.graph;
  const TensorType data = graph.type(context.inputs[0]);
  const int64_t batch_dims = attributes_of(context).integer("batch_dims");
  return {scatter_nd(graph, zeros(graph, data), context.inputs[1], context.output_gradients[0], "add", batch_dims,
                     gradient_name(context, "data")),
          ValueId{}};
}

OpDef gather_nd_op() {
  OpDef op;
  op.name = "gather_nd";
  op.summary = "The slices of the data that vectors of indices name, one vector along the indices' last axis each.";
  op.inputs = {"data", "indices"};
  op.outputs = {"y"};
  op.attributes = {batch_dims_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const SlicePlaces places = require_slice_places(context);
    return {typed(context.dtype(0), joined(places.count, places.slice))};
  };
  op.gradient = gather_nd_gradient;
  op.examples = {
      {"elements", {f32({3, 5}), i64({4, 2})}, {}, {{}, {-3, 3}}},
      {"rows, repeated", {f32({3, 5}), i32({2, 4, 1})}, {}, {{}, {0, 3}}},
      {"one element", {f32({3, 5}), i32({2})}, {}, {{}, {0, 3}}},
      {"of each batch", {f32({2, 4, 3}), i64({2, 5, 1})}, {{"batch_dims", int64_t{1}}}, {{}, {0, 4}}},
      {"elements of each batch", {f32({2, 4, 3}), i64({2, 2})}, {{"batch_dims", int64_t{1}}}, {{}, {-3, 3}}},
  };
  return op;
}

std::vector<ValueId> scatter_nd_gradient(GradContext& context) {
  Graph& graph = context.graph;
  const std::string reduction = differentiable_reduction(context);
  const int64_t batch_dims = attributes_of(context).integer("batch_dims");
  const ValueId dy = context.output_gradients[0], indices = context.inputs[1];
  const TensorType data = graph.type(context.inputs[0]), updates = graph.type(context.inputs[2]);
  const Shape index_shape = graph.shape(indices);
  const SlicePlaces places = slice_places(data.shape, index_shape, batch_dims);
  const ValueId data_gradient = reduction == "add" ? dy
                                                   : scatter_nd(graph, dy, indices, zeros(graph, updates), "none",
                                                                batch_dims, gradient_name(context, "data"));
  const ValueId counts = arrived(
      graph, reduction, places.chosen_from, places.count,
      [&](ValueId into, ValueId numbers) { return scatter_nd(graph, into, indices, numbers, "none", batch_dims); },
      [&](ValueId from) { return gather_nd(graph, from, indices, batch_dims); });
  // One answer per slice.
  const Shape per_slice =
      joined(places.count, Shape(std::vector<int64_t>(static_cast<size_t>(places.slice.rank()), 1)));
  const ValueId gathered = gather_nd(graph, dy, indices, batch_dims);
  return {data_gradient, ValueId{},
          where(graph, reshape(graph, counts, per_slice.dims()), gathered, constant(graph, updates.dtype, {}, 0),
                gradient_name(context, "updates"))};
}

OpDef scatter_nd_op() {
  OpDef op;
  op.name = "scatter_nd";
  op.summary =
      "The data with updates in place of the slices that vectors of indices name; one out of range is left out.";
  op.inputs = {"data", "indices", "updates"};
  op.outputs = {"y"};
  op.attributes = {batch_dims_attribute(), reduction_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const SlicePlaces places = require_slice_places(context);
    require_updates(context);
    const Shape wanted = joined(places.count, places.slice);
    if (context.shape(2) != wanted)
      context.fail(fmt::format("{} names slices of {} that take updates of {}, got {}", context.describe(1),
                               context.describe(0), to_string(wanted), context.describe(2)));
    return {typed(context.dtype(0), context.shape(0))};
  };
  op.gradient = scatter_nd_gradient;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[2].elements(); };
  op.in_place = {{0, 0}};
  const std::string add = "add";
  op.examples = {
      {"elements", {f32({3, 5}), i64({4, 2}), f32({4})}, {}, {{}, {-3, 3}}},
      {"rows met twice", {f32({3, 5}), i32({2, 4, 1}), f32({2, 4, 5})}, {}, {{}, {0, 3}}},
      {"rows added up", {f32({3, 5}), i32({7, 1}), f32({7, 5})}, {{"reduction", add}}, {{}, {0, 3}}},
      {"in each batch",
       {f32({2, 4, 3}), i64({2, 5, 1}), f32({2, 5, 3})},
       {{"batch_dims", int64_t{1}}, {"reduction", add}},
       {{}, {-4, 4}}},
      {"some out of range", {f32({4, 2}), i32({6, 1}), f32({6, 2})}, {{"reduction", add}}, {{}, {-6, 6}}},
      {"some out of range, written over", {f32({4, 2}), i32({6, 1}), f32({6, 2})}, {}, {{}, {-6, 6}}},
      {"product",
       {i64({4}), i32({7, 1}), i64({7})},
       {{"reduction", std::string("multiply")}},
       {{1, 9}, {0, 4}, {1, 9}}},
      {"largest",
       {i64({4}), i32({7, 1}), i64({7})},
       {{"reduction", std::string("maximum")}},
       {{0, 9}, {0, 4}, {0, 99}}},
  };
  return op;
}

}  // namespace

void add_scatter_ops(OpRegistry& registry) {
  registry.add(of_work(work::kLookUps, scatter_elements_op()));
  registry.add(of_work(work::kLookUps, gather_nd_op()));
  registry.add(of_work(work::kLookUps, scatter_nd_op()));
}

ValueId scatter_elements(Graph& graph, ValueId data, ValueId indices, ValueId updates, int64_t axis,
                         const std::string& reduction, const std::string& name) {
  return graph.add("scatter_elements", {data, indices, updates}, {{"axis", axis}, {"reduction", reduction}}, name);
}

ValueId gather_elements(Graph& graph, ValueId x, ValueId indices, int64_t axis, const std::string& name) {
  const std::string hint = name.empty() ? "gather_elements" : name;
  const Shape shape = graph.shape(x), wanted = graph.shape(indices);
  const auto normal = normalize_axis(axis, shape.rank());
  if (!normal)
    fail(ErrorKind::shape, "[gather_elements] '{}': axis {} is not an axis of '{}' {}", hint, axis, graph.value(x).name,
         to_string(shape));
  std::vector<int64_t> ends = shape.dims();
  bool fits = wanted.rank() == shape.rank();
  for (int at = 0; fits && at < shape.rank(); ++at) {
    fits = at == *normal || wanted[at] <= shape[at];
    if (at != *normal) ends[static_cast<size_t>(at)] = wanted[at];
  }
  if (!fits)
    fail(ErrorKind::shape,
         "[gather_elements] '{}': '{}' {} must have the rank of '{}' {}, and be no larger in any axis but {}", hint,
         graph.value(indices).name, to_string(wanted), graph.value(x).name, to_string(shape), *normal);
  if (Shape(ends) != shape) x = slice(graph, x, std::vector<int64_t>(ends.size(), 0), ends);
  const ValueId counted = as_dtype(graph, indices, DType::i64);
  const ValueId is_negative = less(graph, counted, constant(graph, DType::i64, {}, 0));
  const ValueId from_end = add(graph, counted, constant(graph, DType::i64, {}, shape[*normal]));
  return gather(graph, x, where(graph, is_negative, from_end, counted), axis, hint);
}

ValueId gather_nd(Graph& graph, ValueId data, ValueId indices, int64_t batch_dims, const std::string& name) {
  return graph.add("gather_nd", {data, indices}, {{"batch_dims", batch_dims}}, name);
}

ValueId scatter_nd(Graph& graph, ValueId data, ValueId indices, ValueId updates, const std::string& reduction,
                   int64_t batch_dims, const std::string& name) {
  return graph.add("scatter_nd", {data, indices, updates}, {{"batch_dims", batch_dims}, {"reduction", reduction}},
                   name);
}

}  // namespace weft::ops
