// Collectives: what all ranks of a run compute together. A rank that is alone gets back what it gave.
#include "weft/ops/ranks/collective.h"

#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/ops/ranks/collective_support.h"

namespace weft::ops {

namespace {

std::vector<TensorType> same_types(const InferContext& context) {
  require_reduction(context);
  require_number(context);
  for (int operand = 0; operand < context.input_count(); ++operand) require_sums(context, operand);
  return types_of_operands(context);
}

OpDef all_reduce_op() {
  OpDef op;
  op.name = kAllReduce;
  op.summary = "The mean, or the sum, of a tensor over all ranks, on each of them.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {reduction_attribute(), axis_attribute()};
  op.infer = same_types;
  op.dimensions = linear_dimensions;
  // What each rank does with its result, all of them do to the operand of each.
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    return {context.graph.add(kAllReduce, {context.output_gradients[0]}, attributes_of(context),
                              gradient_name(context, "x"))};
  };
  op.layout_rule = LayoutRule::elementwise;
  op.in_place = {{0, 0}};
  op.examples = {{"mean of a matrix", {f32({3, 5})}},
                 {"sum of an image", {f32({2, 3, 3, 2})}, {{"reduction", "sum"}}},
                 {"scalar", {f32({})}}};
  return op;
}

OpDef axis_place_op() {
  OpDef op;
  op.name = kAxisPlace;
  op.summary = "Where this rank stands on an axis of the mesh, from 0.";
  op.outputs = {"place"};
  op.attributes = {axis_attribute(), required_attribute("ranks", int64_t{2}, "along the axis")};
  op.infer = [](const InferContext&) -> std::vector<TensorType> { return {i64({})}; };
  op.examples = {{"of two", {}, {{"ranks", int64_t{2}}}},
                 {"of three", {}, {{"ranks", int64_t{3}}}},
                 {"along tensor", {}, {{"ranks", int64_t{2}}, {kAxis, std::string(kTensorAxis)}}}};
  return op;
}

OpDef half_op(const char* name, std::string summary, bool is_start, const AttributeSpec& own) {
  return half_that_keeps_shapes(name, std::move(summary), is_start, "reduced", {reduction_attribute(), own},
                                same_types);
}

}  // namespace

void add_collective_ops(OpRegistry& registry) {
  registry.add(of_work(work::kCommunication, all_reduce_op()));
  registry.add(of_work(work::kCopies, axis_place_op()));
  registry.add(of_work(
      work::kCommunication,
      half_op(
          kAllReduceStart, "Begins to reduce tensors over all ranks; made by a pass only.", /*is_start=*/true,
          attribute(kPriority, int64_t{0}, "between hosts: what has a lower one goes first, else what began first"))));
  registry.add(
      of_work(work::kCommunication,
              half_op(kAllReduceWait, "Waits for tensors that are reduced over all ranks; made by a pass only.",
                      /*is_start=*/false,
                      attribute(kDeferred, false, "the plan may wait in the next run, where what follows is needed"))));
  add_collectives_of_parts(registry);
  add_collectives_with_root(registry);
  add_message_ops(registry);
}

ValueId all_reduce(Graph& graph, ValueId x, const std::string& reduction, const std::string& name,
                   const std::string& axis) {
  return graph.add(kAllReduce, {x}, {{"reduction", reduction}, {kAxis, axis}}, name);
}

}  // namespace weft::ops
