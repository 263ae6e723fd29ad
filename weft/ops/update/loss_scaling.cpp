// Loss scaling (Micikevicius et al. 2018, "Mixed precision training"): gradients brought back to their own scale with
// the question whether they are finite, and the rule by which the scale follows the answers.
#include "weft/ops/update/loss_scaling.h"

#include "weft/base/error.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {
namespace {

std::vector<TensorType> infer_unscale(const InferContext& context) {
  context.require_dtype(0, DType::f32);
  context.require_rank(1, 0);
  context.require_dtype(1, DType::f32);
  return {f32(context.shape(0)), f32({})};
}

std::vector<TensorType> infer_scale_update(const InferContext& context) {
  for (int operand = 0; operand < 5; ++operand) {
    context.require_rank(operand, 0);
    context.require_dtype(operand, operand == 0 || operand == 4 ? DType::f32 : DType::i64);
  }
  const double growth = context.attributes.real("growth_factor"), backoff = context.attributes.real("backoff_factor");
  if (!(growth >= 1)) context.fail(fmt::format("growth_factor must be at least 1, got {}", growth));
  if (!(backoff > 0 && backoff <= 1))
    context.fail(fmt::format("backoff_factor must be above 0 and at most 1, got {}", backoff));
  if (const int64_t interval = context.attributes.integer("growth_interval"); interval < 1)
    context.fail(fmt::format("growth_interval must be at least 1, got {}", interval));
  return {f32({}), i64({}), i64({}), i64({})};
}

OpDef unscale_op() {
  OpDef op;
  op.name = "unscale_gradient";
  op.summary = "A gradient divided by the scale of the loss, and whether all of it is finite.";
  op.inputs = {"gradient", "scale"};
  op.outputs = {"gradient", "finite"};
  op.infer = infer_unscale;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.layout_rule = LayoutRule::elementwise;
  op.of_split = {OfSplit::elements, OfSplit::all};
  op.dimensions = [](const DimensionContext& context) {
    DimensionRule rule = elementwise_dimensions(context);
    rule.joined = {Joined::sum, Joined::all};
    return rule;
  };
  op.in_place = {{0, 0}};
  for (const Shape& shape : {Shape{5, 7}, Shape{16, 3, 3, 3}, Shape{33}})
    op.examples.push_back({"rank " + std::to_string(shape.rank()), {f32(shape), f32({})}, {}, {{-1, 1}, {1, 8}}});
  return op;
}

OpDef scale_update_op() {
  OpDef op;
  op.name = "loss_scale_update";
  op.summary = "The scale of the loss after a step, as torch.cuda.amp.GradScaler has it, with what it counts.";
  op.inputs = {"scale", "streak", "updates", "skipped", "finite"};
  op.outputs = {"scale", "streak", "updates", "skipped"};
  op.attributes = {attribute("growth_factor", 2.0, "what the scale is multiplied by after growth_interval clean steps"),
                   attribute("backoff_factor", 0.5, "what it is multiplied by after an overflow"),
                   attribute("growth_interval", int64_t{2000}, "steps without an overflow in a row before it grows")};
  op.infer = infer_scale_update;
  op.flops = [](const auto&, const auto&, const Attributes&) { return int64_t{4}; };
  op.in_place = {{0, 0}, {1, 1}, {2, 2}, {3, 3}};
  op.is_update = true;
  const std::vector<TensorType> types = {f32({}), i64({}), i64({}), i64({}), f32({})};
  op.examples = {{"clean", types, {}, {{1, 8}, {0, 1999}, {0, 9}, {0, 9}, {1, 2}}},
                 {"grows", types, {{"growth_interval", int64_t{3}}}, {{1, 8}, {2, 3}, {0, 9}, {0, 9}, {1, 2}}},
                 {"overflow", types, {}, {{1, 8}, {-3, 1999}, {0, 9}, {0, 9}, {0, 0}}}};
  return op;
}

}  // namespace

void add_loss_scaling_ops(OpRegistry& registry) {
  registry.add(unscale_op());
  registry.add(of_work(work::kUpdates, scale_update_op()));
}

UnscaledGradient unscale_gradient(Graph& graph, ValueId gradient, ValueId scale, const std::string& name) {
  const auto results = graph.add_node("unscale_gradient", {gradient, scale}, {}, name);
  return {results[0], results[1]};
}

LossScaleState loss_scale_update(Graph& graph, const LossScaleState& state, ValueId finite,
                                 const LossScaleOptions& options, const std::string& name) {
  const auto results =
      graph.add_node("loss_scale_update", {state.scale, state.streak, state.updates, state.skipped, finite},
                     {{"growth_factor", options.growth_factor},
                      {"backoff_factor", options.backoff_factor},
                      {"growth_interval", options.growth_interval}},
                     name);
  return {results[0], results[1], results[2], results[3]};
}

}  // namespace weft::ops
