// Random ops: pure functions of (seed, step, stream, element), so that nothing random has to be stored.
#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {
namespace {

std::vector<TensorType> infer_dropout(const InferContext& context) {
  const DType dtype = context.require_compute_dtype(0);
  for (const int scalar : {1, 2}) {
    context.require_rank(scalar, 0);
    context.require_dtype(scalar, DType::i64);
  }
  const double probability = context.attributes.real("probability");
  if (!(probability >= 0 && probability < 1)) {
    context.fail(fmt::format("probability must be at least 0 and below 1, got {}", probability));
  }
  return {typed(dtype, context.shape(0))};
}

/// Linear in x: the same mask and factor, drawn again.
std::vector<ValueId> grad_dropout(GradContext& context) {
  const std::vector<ValueId> operands{context.output_gradients[0], context.inputs[1], context.inputs[2]};
  return {context.graph.add("dropout", operands, attributes_of(context), gradient_name(context, "x")), ValueId{},
          ValueId{}};
}

OpExample example(std::string label, Shape shape, double probability, int64_t stream) {
  return {std::move(label),
          {f32(std::move(shape)), i64({}), i64({})},
          {{"probability", probability}, {"stream", stream}},
          {{-1, 1}, {0, 1000}, {0, 1000}}};
}

}  // namespace

void add_random_ops(OpRegistry& registry) {
  OpDef op;
  op.name = "dropout";
  op.summary = "Zero with the given probability, else x / (1 - probability) (Srivastava et al. 2014).";
  op.inputs = {"x", "seed", "step"};
  op.outputs = {"output"};
  op.attributes = {required_attribute("probability", 0.5, "of an element to become zero, at least 0 and below 1"),
                   attribute("stream", int64_t{0}, "number that keeps the dropouts of one step apart")};
  op.infer = infer_dropout;
  op.gradient = grad_dropout;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.precision = PrecisionRule::follow;
  op.in_place = {{0, 0}};
  op.examples = {example("half", {4, 8}, 0.5, 0), example("a tenth, odd size", {3, 7, 5}, 0.1, 3),
                 example("nothing dropped", {10}, 0.0, 1), example("nearly everything", {2, 3, 3, 3}, 0.9, 2)};
  registry.add(of_work(work::kElementwise, std::move(op)));
}

ValueId dropout(Graph& graph, ValueId x, ValueId seed, ValueId step, double probability, int64_t stream,
                const std::string& name) {
  return graph.add("dropout", {x, seed, step}, {{"probability", probability}, {"stream", stream}}, name);
}

}  // namespace weft::ops
