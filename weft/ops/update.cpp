// Optimiser steps: each reads a parameter, its gradient and the optimiser's state, and writes their successors.
#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"

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

void require_scalar(const InferContext& context, int operand, DType dtype) {
  context.require_rank(operand, 0);
  context.require_dtype(operand, dtype);
}

void require_range(const InferContext& context, const std::string& name, bool below_one) {
  const double value = context.attributes.real(name);
  if (value >= 0 && (!below_one || value < 1)) return;
  context.fail(fmt::format("{} must be at least 0{}, got {}", name, below_one ? " and below 1" : "", value));
}

std::vector<TensorType> infer_sgd(const InferContext& context) {
  require_like_parameter(context, 3);
  require_scalar(context, 3, DType::f32);
  require_range(context, "momentum", true);
  require_range(context, "weight_decay", false);
  return {f32(context.shape(0)), f32(context.shape(0))};
}

std::vector<TensorType> infer_adamw(const InferContext& context) {
  require_like_parameter(context, 4);
  require_scalar(context, 4, DType::f32);
  require_scalar(context, 5, DType::i64);
  require_range(context, "beta1", true);
  require_range(context, "beta2", true);
  require_range(context, "epsilon", false);
  require_range(context, "weight_decay", false);
  return {f32(context.shape(0)), f32(context.shape(0)), f32(context.shape(0))};
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

void add_update_ops(OpRegistry& registry) {
  OpDef sgd;
  sgd.name = "sgd_update";
  sgd.summary = "Stochastic gradient descent with momentum, as torch.optim.SGD.";
  sgd.inputs = {"parameter", "gradient", "velocity", "learning_rate"};
  sgd.outputs = {"parameter", "velocity"};
  sgd.attributes = {attribute("momentum", 0.9, "share of the velocity kept, at least 0 and below 1"),
                    attribute("nesterov", false, "look ahead along the velocity (Sutskever et al. 2013)"),
                    attribute("weight_decay", 0.0, "this times the parameter is added to the gradient")};
  sgd.infer = infer_sgd;
  // Per element a multiply-add each for decay, velocity and parameter; one more with Nesterov.
  sgd.flops = [](const auto& inputs, const auto&, const Attributes& attributes) {
    return (attributes.boolean("nesterov") ? 8 : 6) * inputs[0].elements();
  };
  sgd.layout_rule = LayoutRule::elementwise;
  sgd.in_place = {{0, 0}, {1, 2}};
  sgd.is_update = true;
  sgd.examples = {sgd_example("matrix", {5, 7}, {}),
                  sgd_example("convolution weight", {16, 3, 3, 3}, {{"weight_decay", 5e-2}}),
                  sgd_example("Nesterov", {33}, {{"nesterov", true}, {"momentum", 0.8}, {"weight_decay", 1e-2}}),
                  sgd_example("no momentum", {4, 4}, {{"momentum", 0.0}})};
  registry.add(std::move(sgd));

  OpDef adamw;
  adamw.name = "adamw_update";
  adamw.summary = "Adam with decoupled weight decay (Loshchilov and Hutter 2019), as torch.optim.AdamW.";
  adamw.inputs = {"parameter", "gradient", "first_moment", "second_moment", "learning_rate", "step"};
  adamw.outputs = {"parameter", "first_moment", "second_moment"};
  adamw.attributes = {attribute("beta1", 0.9, "share of the first moment kept"),
                      attribute("beta2", 0.999, "share of the second moment kept"),
                      attribute("epsilon", 1e-8, "added to the root of the second moment"),
                      attribute("weight_decay", 0.01, "this times the learning rate shrinks the parameter")};
  adamw.infer = infer_adamw;
  // Per element: 2 for the decay, 3 and 4 for the moments, 6 for the root, the quotient and the step.
  adamw.flops = [](const auto& inputs, const auto&, const Attributes&) { return 15 * inputs[0].elements(); };
  adamw.layout_rule = LayoutRule::elementwise;
  adamw.in_place = {{0, 0}, {1, 2}, {2, 3}};
  adamw.is_update = true;
  adamw.examples = {adamw_example("matrix", {5, 7}, {}),
                    adamw_example("convolution weight", {16, 3, 3, 3}, {{"weight_decay", 0.0}}),
                    adamw_example("other betas", {33}, {{"beta1", 0.5}, {"beta2", 0.9}, {"epsilon", 1e-3}})};
  registry.add(std::move(adamw));
}

std::array<ValueId, 2> sgd_update(Graph& graph, ValueId parameter, ValueId gradient, ValueId velocity,
                                  ValueId learning_rate, const SgdOptions& options, const std::string& name) {
  const auto results = graph.add_node(
      "sgd_update", {parameter, gradient, velocity, learning_rate},
      {{"momentum", options.momentum}, {"nesterov", options.nesterov}, {"weight_decay", options.weight_decay}}, name);
  return {results[0], results[1]};
}

std::array<ValueId, 3> adamw_update(Graph& graph, ValueId parameter, ValueId gradient, ValueId first_moment,
                                    ValueId second_moment, ValueId learning_rate, ValueId step,
                                    const AdamWOptions& options, const std::string& name) {
  const auto results =
      graph.add_node("adamw_update", {parameter, gradient, first_moment, second_moment, learning_rate, step},
                     {{"beta1", options.beta1},
                      {"beta2", options.beta2},
                      {"epsilon", options.epsilon},
                      {"weight_decay", options.weight_decay}},
                     name);
  return {results[0], results[1], results[2]};
}

}  // namespace weft::ops
