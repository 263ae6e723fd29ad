#include "weft/ops/ops.h"
#include "weft/ops/ranks/collective.h"
#include "weft/ops/ranks/collective_support.h"

namespace weft::ops {

namespace {

void require_root(const InferContext& context) {
  const int64_t root = context.attributes.integer("root");
  if (root < 0) context.fail(fmt::format("root={} is no rank: they count from 0", root));
  require_number(context);
}

std::vector<TensorType> types_sent_around(const InferContext& context) {
  require_root(context);
  for (int operand = 0; operand < context.input_count(); ++operand) require_moves(context, operand, "broadcasts");
  return types_of_operands(context);
}

std::vector<TensorType> types_summed(const InferContext& context) {
  require_root(context);
  for (int operand = 0; operand < context.input_count(); ++operand) require_sums(context, operand);
  return types_of_operands(context);
}

AttributeSpec root_attribute() { return attribute("root", int64_t{0}, "the rank that gives, or gets"); }

/// `back`: the op of the gradient.
OpDef whole_op(const char* name, std::string summary, const char* back, bool sums) {
  OpDef op;
  op.name = name;
  op.summary = std::move(summary);
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {root_attribute()};
  op.infer = sums ? types_summed : types_sent_around;
  op.gradient = [back](GradContext& context) -> std::vector<ValueId> {
    const DType dtype = context.graph.type(context.inputs[0]).dtype;
    if (!is_floating(dtype)) return {ValueId{}};
    const ValueId gradient = as_dtype(context.graph, context.output_gradients[0], summable(dtype));
    return {as_dtype(context.graph,
                     context.graph.add(back, {gradient}, attributes_of(context), gradient_name(context, "x")), dtype)};
  };
  op.layout_rule = LayoutRule::elementwise;
  op.in_place = {{0, 0}};
  op.examples = {{"matrix", {f32({3, 5})}},
                 {"image, of rank 0", {f32({2, 3, 3, 2})}, {{"root", int64_t{0}}}},
                 {"scalar", {f32({})}}};
  return op;
}

OpDef half_op(const char* name, std::string summary, bool is_start, const char* what, bool sums) {
  return half_that_keeps_shapes(name, std::move(summary), is_start, what, {root_attribute()},
                                sums ? types_summed : types_sent_around);
}

}  // namespace

void add_collectives_with_root(OpRegistry& registry) {
  registry.add(of_work(work::kCommunication,
                       whole_op(kBroadcast, "What one rank has, on each of them.", kReduceToRoot, /*sums=*/false)));
  registry.add(of_work(work::kCommunication,
                       half_op(kBroadcastStart, "Begins to give all ranks what one has; made by a pass only.",
                               /*is_start=*/true, "sent around", /*sums=*/false)));
  registry.add(of_work(work::kCommunication,
                       half_op(kBroadcastWait, "Waits for what one rank gives to all; made by a pass only.",
                               /*is_start=*/false, "sent around", /*sums=*/false)));
  registry.add(
      of_work(work::kCommunication,
              whole_op(kReduceToRoot, "The sum of a tensor over all ranks, on one of them; zeros on the others.",
                       kBroadcast, /*sums=*/true)));
  registry.add(
      of_work(work::kCommunication,
              half_op(kReduceToRootStart, "Begins to sum tensors over all ranks on one of them; made by a pass only.",
                      /*is_start=*/true, "reduced", /*sums=*/true)));
  registry.add(of_work(work::kCommunication,
                       half_op(kReduceToRootWait, "Waits for tensors that are summed on one rank; made by a pass only.",
                               /*is_start=*/false, "reduced", /*sums=*/true)));
}

ValueId broadcast(Graph& graph, ValueId x, int64_t root, const std::string& name) {
  return graph.add(kBroadcast, {x}, {{"root", root}}, name);
}

ValueId reduce_to_root(Graph& graph, ValueId x, int64_t root, const std::string& name) {
  return graph.add(kReduceToRoot, {x}, {{"root", root}}, name);
}

}  // namespace weft::ops
