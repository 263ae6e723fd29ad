// The largest or smallest elements along an axis, sorted.
#include <fmt/format.h>

#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

std::vector<TensorType> infer_top_k(const InferContext& context) {
  const int axis = require_axis(context, 0, context.attributes.integer("axis"));
  const int64_t k = context.attributes.integer("k"), size = context.shape(0)[axis];
  if (k < 0 || k > size)
    context.fail(fmt::format("k={} of the {} elements along axis {} of {}; give a number from 0 to {}", k, size, axis,
                             context.describe(0), size));
  Shape shape = context.shape(0);
  shape[axis] = k;
  return {typed(context.dtype(0), shape), i64(shape)};
}

/// Each value's gradient goes back to the element that it is.
std::vector<ValueId> top_k_gradient(GradContext& context) {
  if (!context.output_gradients[0].valid()) return {ValueId{}};
  Graph& graph = context.graph;
  const TensorType x = graph.type(context.inputs[0]);
  const ValueId zeros = constant(graph, x.dtype, x.shape, 0);
  return {scatter_elements(graph, zeros, context.outputs[1], context.output_gradients[0],
                           attributes_of(context).integer("axis"), "none", gradient_name(context, "x"))};
}

}  // namespace

void add_top_k_ops(OpRegistry& registry) {
  OpDef op;
  op.name = "top_k";
  op.summary =
      "The k largest elements along an axis, sorted, and their places (i64); of equal ones the lower place comes "
      "first.";
  op.inputs = {"x"};
  op.outputs = {"values", "indices"};
  op.attributes = {
      required_attribute("k", int64_t{1}, "how many"),
      attribute("axis", int64_t{-1}, "the axis along which they are chosen, negative from the end"),
      attribute("largest", true, "false: the smallest, in ascending order. A NaN counts as the largest number")};
  op.infer = infer_top_k;
  op.gradient = top_k_gradient;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  const std::vector<OpExample::Range> spread{{-1, 1, true}};
  op.examples = {
      {"vector", {f32({7})}, {{"k", int64_t{3}}}, spread},
      {"smallest of each column", {f32({5, 3})}, {{"k", int64_t{2}}, {"axis", int64_t{0}}, {"largest", false}}, spread},
      {"middle axis, all", {f32({2, 4, 3})}, {{"k", int64_t{4}}, {"axis", int64_t{-2}}}, spread},
      {"none", {f32({2, 3})}, {{"k", int64_t{0}}}, spread},
      {"bytes with ties", {typed(DType::u8, {3, 9})}, {{"k", int64_t{5}}}, {{0, 4}}},
  };
  registry.add(of_work(work::kReductions, std::move(op)));
}

TopKResult top_k(Graph& graph, ValueId x, int64_t k, int64_t axis, bool largest, const std::string& name) {
  const auto results = graph.add_node("top_k", {x}, {{"k", k}, {"axis", axis}, {"largest", largest}}, name);
  return {results[0], results[1]};
}

}  // namespace weft::ops
