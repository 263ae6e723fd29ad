#include "weft/ops/update/accumulate.h"

#include "weft/graph/accumulation.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"
#include "weft/ops/update/update_support.h"

namespace weft::ops {

namespace {

std::vector<TensorType> infer_accumulate(const InferContext& context) {
  for (int operand = 0; operand < 2; ++operand) context.require_dtype(operand, DType::f32);
  if (context.shape(1) != context.shape(0))
    context.fail(fmt::format("value wants the shape of its sum {}, got {}", context.describe(0), context.describe(1)));
  for (int operand = 2; operand < 5; ++operand) require_scalar(context, operand, DType::f32);
  return {f32(context.shape(0))};
}

OpExample example(std::string label, const Shape& shape) {
  return {std::move(label),
          {f32(shape), f32(shape), f32({}), f32({}), f32({})},
          {},
          {{-1, 1}, {-1, 1}, {0.5, 1}, {0, 1}, {0.5, 1}}};
}

}  // namespace

void add_accumulate_op(OpRegistry& registry) {
  OpDef op;
  op.name = kAccumulate;
  op.dimensions = elementwise_dimensions;
  op.summary = "One of several runs joins their sum, on which what depends on it waits: keep * sum + take * value.";
  op.inputs = {"sum", "value", "keep", "take", "complete"};
  op.outputs = {"sum"};
  op.infer = infer_accumulate;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 3 * inputs[0].elements(); };
  op.layout_rule = LayoutRule::elementwise;
  op.of_split = {OfSplit::elements};
  op.in_place = {{0, 0}};
  op.is_update = true;
  op.examples = {example("matrix", {5, 7}), example("convolution weight", {16, 3, 3, 3}), example("vector", {33}),
                 example("scalar", {})};
  registry.add(of_work(work::kUpdates, std::move(op)));
}

ValueId accumulate_update(Graph& graph, ValueId sum, ValueId value, ValueId keep, ValueId take, ValueId complete,
                          const std::string& name) {
  return graph.add(kAccumulate, {sum, value, keep, take, complete}, {}, name);
}

}  // namespace weft::ops
