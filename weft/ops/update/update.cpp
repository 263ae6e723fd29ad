// Optimiser steps: each reads a parameter, its gradient and the optimiser's state, and writes their successors. With
// them the one reduction that optimisers need over whole tensors, in whatever layout these have, and the renewal of
// copies of states that a plan keeps.
#include <limits>

#include "weft/base/error.h"
#include "weft/graph/kept.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"
#include "weft/ops/ranks/tree_sum.h"
#include "weft/ops/update/accumulate.h"
#include "weft/ops/update/loss_scaling.h"
#include "weft/ops/update/product_update.h"
#include "weft/ops/update/update_support.h"

namespace weft::ops {
namespace {

/// Operands 1..count-1 have the parameter's shape, all are f32.
void require_like_parameter(const InferContext& context, int count) {
  for (int operand = 0; operand < count; ++operand) {
    context.require_dtype(operand, DType::f32);
    if (context.shape(operand) == context.shape(0)) continue;
    context.fail(fmt::format("{} wants the shape of its parameter {}, got {}",
                             context.op.inputs[static_cast<size_t>(operand)], context.describe(0),
                             context.describe(operand)));
  }
}

std::vector<TensorType> infer_sgd(const InferContext& context) {
  require_like_parameter(context, 3);
  require_scalar(context, 3, DType::f32);
  require_apply(context, 4);
  require_range(context, "momentum", true);
  require_range(context, "weight_decay", false);
  return {f32(context.shape(0)), f32(context.shape(0))};
}

std::vector<TensorType> infer_adamw(const InferContext& context) {
  require_like_parameter(context, 4);
  require_scalar(context, 4, DType::f32);
  require_scalar(context, 5, DType::i64);
  require_apply(context, 6);
  require_range(context, "beta1", true);
  require_range(context, "beta2", true);
  // Kernels run over the padding of layouts too, where 0 / epsilon must stay 0.
  const auto epsilon = static_cast<float>(context.attributes.real("epsilon"));
  if (!(epsilon > 0 && epsilon <= std::numeric_limits<float>::max()))
    context.fail(fmt::format("epsilon must be above 0, got {}", context.attributes.real("epsilon")));
  require_range(context, "weight_decay", false);
  return {f32(context.shape(0)), f32(context.shape(0)), f32(context.shape(0))};
}

std::vector<TensorType> infer_blend(const InferContext& context) {
  require_like_parameter(context, 2);
  require_scalar(context, 2, DType::f32);
  require_scalar(context, 3, DType::f32);
  require_apply(context, 4);
  return {f32(context.shape(0))};
}

OpExample with_apply(OpExample example) {
  example.label += ", applied";
  example.inputs.push_back(f32({}));
  example.ranges.push_back({0.5, 1});
  return example;
}

OpExample blend_example(std::string label, const Shape& shape) {
  return {std::move(label), {f32(shape), f32(shape), f32({}), f32({})}, {}, {{-1, 1}, {-1, 1}, {0.5, 1}, {0, 1}}};
}

OpExample sgd_example(std::string label, const Shape& shape, Attributes attributes) {
  const TensorType type = f32(shape);
  return {
      std::move(label), {type, type, type, f32({})}, std::move(attributes), {{-1, 1}, {-1, 1}, {-1, 1}, {0.01, 0.1}}};
}

OpExample adamw_example(std::string label, const Shape& shape, Attributes attributes) {
  const TensorType type = f32(shape);
  return {std::move(label),
          {type, type, type, type, f32({}), i64({})},
          std::move(attributes),
          {{-1, 1}, {-1, 1}, {-1, 1}, {0.01, 1}, {0.001, 0.01}, {0, 20}}};
}

}  // namespace

namespace {

OpDef sgd_update_op() {
  OpDef op;
  op.name = "sgd_update";
  op.dimensions = elementwise_dimensions;
  op.summary = "Stochastic gradient descent with momentum, as torch.optim.SGD.";
  op.inputs = {"parameter", "gradient", "velocity", "learning_rate", kApply};
  op.outputs = {"parameter", "velocity"};
  op.attributes = {attribute("momentum", 0.9, "share of the velocity kept, at least 0 and below 1"),
                   attribute("nesterov", false, "look ahead along the velocity (Sutskever et al. 2013)"),
                   attribute("weight_decay", 0.0, "this times the parameter is added to the gradient")};
  op.infer = infer_sgd;
  // Per element a multiply-add each for decay, velocity and parameter; one more with Nesterov.
  op.flops = [](const auto& inputs, const auto&, const Attributes& attributes) {
    return (attributes.boolean("nesterov") ? 8 : 6) * inputs[0].elements();
  };
  op.layout_rule = LayoutRule::elementwise;
  op.of_split = {OfSplit::elements};
  op.in_place = {{0, 0}, {1, 2}};
  op.is_update = true;
  op.examples = {
      sgd_example("matrix", {5, 7}, {}), sgd_example("convolution weight", {16, 3, 3, 3}, {{"weight_decay", 5e-2}}),
      sgd_example("Nesterov", {33}, {{"nesterov", true}, {"momentum", 0.8}, {"weight_decay", 1e-2}}),
      sgd_example("no momentum", {4, 4}, {{"momentum", 0.0}}), with_apply(sgd_example("matrix", {5, 7}, {}))};
  return of_work(work::kUpdates, std::move(op));
}

OpDef adamw_update_op() {
  OpDef op;
  op.name = "adamw_update";
  op.dimensions = elementwise_dimensions;
  op.summary = "Adam with either form of weight decay, as torch.optim.AdamW and torch.optim.Adam.";
  op.inputs = {"parameter", "gradient", "first_moment", "second_moment", "learning_rate", "step", kApply};
  op.outputs = {"parameter", "first_moment", "second_moment"};
  op.attributes = {attribute("beta1", 0.9, "share of the first moment kept"),
                   attribute("beta2", 0.999, "share of the second moment kept"),
                   attribute("epsilon", 1e-8, "added to the root of the second moment"),
                   attribute("weight_decay", 0.01, "this times the learning rate shrinks the parameter"),
                   attribute("decoupled", true, "false: weight_decay times the parameter joins the gradient (L2)")};
  op.infer = infer_adamw;
  // Per element: 2 for the decay, 3 and 4 for the moments, 6 for the root, the quotient and the step.
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 15 * inputs[0].elements(); };
  op.layout_rule = LayoutRule::elementwise;
  op.of_split = {OfSplit::elements};
  op.in_place = {{0, 0}, {1, 2}, {2, 3}};
  op.is_update = true;
  op.examples = {adamw_example("matrix", {5, 7}, {}),
                 adamw_example("convolution weight", {16, 3, 3, 3}, {{"weight_decay", 0.0}}),
                 adamw_example("L2", {4, 9}, {{"weight_decay", 0.1}, {"decoupled", false}}),
                 adamw_example("other betas", {33}, {{"beta1", 0.5}, {"beta2", 0.9}, {"epsilon", 1e-3}}),
                 with_apply(adamw_example("matrix", {5, 7}, {}))};
  return of_work(work::kUpdates, std::move(op));
}

OpDef blend_update_op() {
  OpDef op;
  op.name = "blend_update";
  op.dimensions = elementwise_dimensions;
  op.summary = "keep * state + take * value in place of the state: momenta, averages, steps along a direction.";
  op.inputs = {"state", "value", "keep", "take", kApply};
  op.outputs = {"state"};
  op.infer = infer_blend;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 3 * inputs[0].elements(); };
  op.layout_rule = LayoutRule::elementwise;
  op.of_split = {OfSplit::elements};
  op.in_place = {{0, 0}};
  op.is_update = true;
  op.examples = {blend_example("matrix", {5, 7}), blend_example("convolution weight", {16, 3, 3, 3}),
                 blend_example("vector", {33}), with_apply(blend_example("matrix", {5, 7}))};
  return of_work(work::kUpdates, std::move(op));
}

OpDef renew_op() {
  OpDef op;
  op.name = kRenew;
  op.summary = "The copy of a state in another type or layout, made anew from the state's successor.";
  op.inputs = {"copy", "source"};
  op.outputs = {"copy"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_same_shape(1, 0);
    return {{context.dtype(0), context.shape(0), {}}};
  };
  op.layout_rule = LayoutRule::kernel;
  op.in_place = {{0, 0}};
  op.is_update = true;
  for (const DType dtype : {DType::bf16, DType::f16})
    op.examples.push_back({"in " + std::string(name_of(dtype)), {typed(dtype, {5, 7}), f32({5, 7})}, {}, {}});
  op.examples.push_back({"in the source's type", {f32({4, 3, 3, 3}), f32({4, 3, 3, 3})}, {}, {}});
  return of_work(work::kCasts, std::move(op));
}

OpDef squared_norm_op() {
  OpDef op;
  op.name = "squared_norm";
  op.dimensions = [](const DimensionContext& context) {
    return DimensionRule{.inputs = {count_up(context.inputs[0].shape.rank())}, .outputs = {{}}};
  };
  op.summary = "The sum of the squares of all elements, one number.";
  op.inputs = {"x"};
  op.outputs = {"sum"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::f32);
    return {f32({})};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const ValueId twice = multiply_scalar(context.graph, context.output_gradients[0], 2);
    return {multiply(context.graph, context.inputs[0], twice, gradient_name(context, "x"))};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 2 * inputs[0].elements(); };
  op.layout_rule = LayoutRule::channelwise;
  op.of_split = {OfSplit::sum};
  for (const Shape& shape : {Shape{5, 7}, Shape{4, 3, 3, 3}, Shape{33}})
    op.examples.push_back({"rank " + std::to_string(shape.rank()), {f32(shape)}, {}, {}});
  return of_work(work::kReductions, std::move(op));
}

}  // namespace

void add_update_ops(OpRegistry& registry) {
  registry.add(sgd_update_op());
  registry.add(adamw_update_op());
  registry.add(blend_update_op());
  registry.add(renew_op());
  registry.add(squared_norm_op());
  add_loss_scaling_ops(registry);
  add_accumulate_op(registry);
  add_tree_sum_op(registry);
  add_product_update_op(registry);
}

namespace {

std::vector<ValueId> with_condition(std::vector<ValueId> operands, ValueId apply) {
  if (apply.valid()) operands.push_back(apply);
  return operands;
}

}  // namespace

std::array<ValueId, 2> sgd_update(Graph& graph, ValueId parameter, ValueId gradient, ValueId velocity,
                                  ValueId learning_rate, const SgdOptions& options, const std::string& name,
                                  ValueId apply) {
  const auto results = graph.add_node(
      "sgd_update", with_condition({parameter, gradient, velocity, learning_rate}, apply),
      {{"momentum", options.momentum}, {"nesterov", options.nesterov}, {"weight_decay", options.weight_decay}}, name);
  return {results[0], results[1]};
}

std::array<ValueId, 3> adamw_update(Graph& graph, ValueId parameter, ValueId gradient, ValueId first_moment,
                                    ValueId second_moment, ValueId learning_rate, ValueId step,
                                    const AdamWOptions& options, const std::string& name, ValueId apply) {
  const auto results = graph.add_node(
      "adamw_update", with_condition({parameter, gradient, first_moment, second_moment, learning_rate, step}, apply),
      {{"beta1", options.beta1},
       {"beta2", options.beta2},
       {"epsilon", options.epsilon},
       {"weight_decay", options.weight_decay},
       {"decoupled", options.decoupled}},
      name);
  return {results[0], results[1], results[2]};
}

ValueId blend_update(Graph& graph, ValueId state, ValueId value, ValueId keep, ValueId take, const std::string& name,
                     ValueId apply) {
  return graph.add("blend_update", with_condition({state, value, keep, take}, apply), {}, name);
}

ValueId squared_norm(Graph& graph, ValueId x, const std::string& name) {
  return graph.add("squared_norm", {x}, {}, name);
}

}  // namespace weft::ops
