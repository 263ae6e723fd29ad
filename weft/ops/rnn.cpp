// Recurrent layers: LSTM (Hochreiter and Schmidhuber 1997, with forget gates) and GRU (Cho et al. 2014), by PyTorch's
// formulas. The ops hold what has to go step by step; the product of all inputs with their weights is a matmul before
// them, and the gradients of both weights are matmuls after their backward ops. The recurrent weights alone may be bf16
// or f16. The product of a step then may round what it multiplies them by to that type; its sums, and all states, are
// f32.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {
namespace {

struct Sizes {
  int64_t steps, batch, width;
};

void require_types(const InferContext& context, int weight) {
  context.require_compute_dtype(weight);
  for (int operand = 0; operand < context.input_count(); ++operand)
    if (operand != weight) context.require_dtype(operand, DType::f32);
}

/// Of `projected` [T,N,gates H] and `weight` [gates H,H].
Sizes sizes_of(const InferContext& context, int projected, int weight, int64_t gates) {
  require_types(context, weight);
  context.require_rank(projected, 3);
  context.require_rank(weight, 2);
  const int64_t width = context.shape(weight)[1];
  if (context.shape(weight)[0] != gates * width)
    context.fail(
        fmt::format("weight wants {} rows per column, one for each gate, got {}", gates, context.describe(weight)));
  const Shape& shape = context.shape(projected);
  if (shape[2] != gates * width)
    context.fail(fmt::format("{} wants (steps, batch, {}) to go with {}, got {}",
                             context.op.inputs[static_cast<size_t>(projected)], gates * width, context.describe(weight),
                             context.describe(projected)));
  return {shape[0], shape[1], width};
}

void require_shape(const InferContext& context, int operand, const Shape& wanted) {
  if (operand >= context.input_count() || context.shape(operand) == wanted) return;
  context.fail(fmt::format("{} wants shape {}, got {}", context.op.inputs[static_cast<size_t>(operand)],
                           to_string(wanted), context.describe(operand)));
}

/// One product with the recurrent weights per step, and `per_cell` operations for each element of the hidden state.
int64_t step_flops(const Shape& output, int64_t gates, int64_t per_cell) {
  return output.elements() * (2 * gates * output[2] + per_cell);
}

/// Along the batch: [T,N,..] and [N,H].
DimensionRule recurrent_dimensions(const DimensionContext& context) {
  constexpr int kWhole = DimensionRule::kWhole;
  const auto labels_of = [](const Shape& shape) -> std::vector<int> {
    if (shape.rank() == 3) return {kWhole, 0, kWhole};
    return shape.rank() == 2 ? std::vector<int>{0, kWhole} : std::vector<int>{kWhole};
  };
  DimensionRule rule;
  for (const TensorType& input : context.inputs) rule.inputs.push_back(labels_of(input.shape));
  rule.inputs[1] = {kWhole, kWhole};  // the weight
  for (const TensorType& output : context.outputs) rule.outputs.push_back(labels_of(output.shape));
  return rule;
}

AttributeSpec reverse_attribute() { return attribute("reverse", false, "from the last step to the first"); }

Attributes reverse_of(const GradContext& context) { return {{"reverse", attributes_of(context).boolean("reverse")}}; }

/// The hidden state that each step started from, [T N,H].
ValueId states_before(GradContext& context, ValueId output, ValueId initial_hidden) {
  Graph& graph = context.graph;
  const Shape shape = graph.shape(output);
  const int64_t steps = shape[0], batch = shape[1], width = shape[2];
  const bool reverse = attributes_of(context).boolean("reverse");
  ValueId states = reshape(graph, initial_hidden, {1, batch, width});
  if (steps > 1) {
    const int64_t first = reverse ? 1 : 0;
    const ValueId others = slice(graph, output, {first, 0, 0}, {first + steps - 1, batch, width});
    states = concat(graph, reverse ? std::vector{others, states} : std::vector{states, others}, 0);
  }
  return reshape(graph, states, {steps * batch, width});
}

/// gates [T,N,G H] and what each step started from give the gradient of the recurrent weights [G H,H].
ValueId weight_gradient(GradContext& context, ValueId gates, ValueId states) {
  const ValueId rows = reshape(context.graph, gates, {-1, context.graph.shape(gates)[2]});
  return matmul(context.graph, rows, states, /*transpose_a=*/true, false, gradient_name(context, "weight"));
}

ValueId bias_gradient(GradContext& context, ValueId gates, const std::string& operand) {
  return reduce_sum(context.graph, gates, {0, 1}, false, gradient_name(context, operand));
}

ValueId or_zero(Graph& graph, ValueId gradient, ValueId like) {
  return gradient.valid() ? gradient : constant(graph, graph.shape(like), 0);
}

void refuse_gates(const GradContext& context, size_t gates) {
  if (!context.output_gradients[gates].valid()) return;
  fail(ErrorKind::usage, "[{}] '{}': the gates are kept for the gradient and cannot be differentiated themselves",
       context.graph.node(context.node).op->name, context.graph.node_name(context.node));
}

std::vector<ValueId> grad_lstm(GradContext& context) {
  Graph& graph = context.graph;
  refuse_gates(context, 2);
  const ValueId weight = context.inputs[1], initial_hidden = context.inputs[3], initial_cell = context.inputs[4];
  const ValueId output = context.outputs[0], cells = context.outputs[1], gates = context.outputs[2];
  std::vector<ValueId> operands{or_zero(graph, context.output_gradients[0], output), weight, initial_cell, cells,
                                gates};
  if (context.output_gradients[1].valid()) operands.push_back(context.output_gradients[1]);
  const Attributes attributes = reverse_of(context);
  const std::vector<ValueId> results =
      graph.add_node("lstm_backward", operands, attributes, gradient_name(context, "projected"));
  return {results[0], weight_gradient(context, results[0], states_before(context, output, initial_hidden)),
          bias_gradient(context, results[0], "bias"), results[1], results[2]};
}

std::vector<ValueId> grad_gru(GradContext& context) {
  Graph& graph = context.graph;
  refuse_gates(context, 1);
  const ValueId weight = context.inputs[1], initial_hidden = context.inputs[4];
  const ValueId output = context.outputs[0], gates = context.outputs[1];
  const std::vector<ValueId> results = graph.add_node(
      "gru_backward", {or_zero(graph, context.output_gradients[0], output), weight, initial_hidden, output, gates},
      reverse_of(context), gradient_name(context, "projected"));
  return {results[0], weight_gradient(context, results[1], states_before(context, output, initial_hidden)),
          bias_gradient(context, results[0], "input_bias"), bias_gradient(context, results[1], "recurrent_bias"),
          results[2]};
}

const Attributes kReverse{{"reverse", true}};

OpExample lstm_example(std::string label, int64_t steps, int64_t batch, int64_t width, const Attributes& attributes) {
  return {std::move(label),
          {f32({steps, batch, 4 * width}), f32({4 * width, width}), f32({4 * width}), f32({batch, width}),
           f32({batch, width})},
          attributes,
          {}};
}

OpExample lstm_backward_example(std::string label, int64_t steps, int64_t batch, int64_t width,
                                const Attributes& attributes, bool with_cells = false) {
  const Shape states{steps, batch, width};
  OpExample example{
      std::move(label),
      {f32(states), f32({4 * width, width}), f32({batch, width}), f32(states), f32({steps, batch, 4 * width})},
      attributes,
      {{}, {}, {}, {}, {0, 1}}};
  if (with_cells) example.inputs.push_back(f32(states));
  return example;
}

OpExample gru_example(std::string label, int64_t steps, int64_t batch, int64_t width, const Attributes& attributes) {
  return {std::move(label),
          {f32({steps, batch, 3 * width}), f32({3 * width, width}), f32({3 * width}), f32({3 * width}),
           f32({batch, width})},
          attributes,
          {}};
}

OpExample gru_backward_example(std::string label, int64_t steps, int64_t batch, int64_t width,
                               const Attributes& attributes) {
  const Shape states{steps, batch, width};
  return {std::move(label),
          {f32(states), f32({3 * width, width}), f32({batch, width}), f32(states), f32({steps, batch, 4 * width})},
          attributes,
          {{}, {}, {}, {}, {0, 1}}};
}

OpDef lstm_op() {
  OpDef op;
  op.name = "lstm";
  op.dimensions = recurrent_dimensions;
  op.summary =
      "The recurrence of an LSTM layer: i, f, o = sigmoid and g = tanh of projected + bias + hidden weight^T; "
      "cell = f cell + i g; hidden = o tanh(cell).";
  op.inputs = {"projected", "weight", "bias", "initial_hidden", "initial_cell"};
  op.outputs = {"output", "cells", "gates"};
  op.attributes = {reverse_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const auto [steps, batch, width] = sizes_of(context, 0, 1, 4);
    require_shape(context, 2, {4 * width});
    require_shape(context, 3, {batch, width});
    require_shape(context, 4, {batch, width});
    const TensorType states = f32({steps, batch, width});
    return {states, states, f32({steps, batch, 4 * width})};
  };
  op.gradient = grad_lstm;
  // Per element of the hidden state: 8 sums, 5 functions of about 4, 4 for the states.
  op.flops = [](const auto&, const std::vector<TensorType>& outputs, const Attributes&) {
    return step_flops(outputs[0].shape, 4, 32);
  };
  op.examples = {lstm_example("three steps", 3, 2, 5, {}), lstm_example("backwards", 4, 3, 2, kReverse),
                 lstm_example("multiples of 16", 2, 3, 16, {}), lstm_example("one step", 1, 2, 3, kReverse),
                 lstm_example("odd width", 2, 5, 17, {})};
  return op;
}

OpDef lstm_backward_op() {
  OpDef op;
  op.name = "lstm_backward";
  op.dimensions = recurrent_dimensions;
  op.summary = "Gradients of lstm with respect to what enters its gates and to its initial state.";
  op.inputs = {"output_gradient", "weight", "initial_cell", "cells", "gates", "cells_gradient?"};
  op.outputs = {"projected_gradient", "initial_hidden_gradient", "initial_cell_gradient"};
  op.attributes = {reverse_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const auto [steps, batch, width] = sizes_of(context, 4, 1, 4);
    for (const int states : {0, 3, 5}) require_shape(context, states, {steps, batch, width});
    require_shape(context, 2, {batch, width});
    const TensorType state = f32({batch, width});
    return {f32(context.shape(4)), state, state};
  };
  op.flops = [](const std::vector<TensorType>& inputs, const auto&, const Attributes&) {
    return step_flops(inputs[0].shape, 4, 30);
  };
  op.examples = {
      lstm_backward_example("three steps", 3, 2, 5, {}), lstm_backward_example("backwards", 4, 3, 2, kReverse),
      lstm_backward_example("with the cells' gradient", 2, 3, 16, {}, true),
      lstm_backward_example("one step", 1, 2, 3, kReverse, true), lstm_backward_example("odd width", 2, 5, 17, {})};
  return op;
}

OpDef gru_op() {
  OpDef op;
  op.name = "gru";
  op.dimensions = recurrent_dimensions;
  op.summary =
      "The recurrence of a GRU layer: r, z = sigmoid(x + u), n = tanh(x + r u), hidden = (1 - z) n + z hidden, with "
      "x = projected + input_bias and u = hidden weight^T + recurrent_bias.";
  op.inputs = {"projected", "weight", "input_bias", "recurrent_bias", "initial_hidden"};
  op.outputs = {"output", "gates"};
  op.attributes = {reverse_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const auto [steps, batch, width] = sizes_of(context, 0, 1, 3);
    require_shape(context, 2, {3 * width});
    require_shape(context, 3, {3 * width});
    require_shape(context, 4, {batch, width});
    return {f32({steps, batch, width}), f32({steps, batch, 4 * width})};
  };
  op.gradient = grad_gru;
  // Per element of the hidden state: 9 sums, 3 functions of about 4, 5 for the rest.
  op.flops = [](const auto&, const std::vector<TensorType>& outputs, const Attributes&) {
    return step_flops(outputs[0].shape, 3, 26);
  };
  op.examples = {gru_example("three steps", 3, 2, 5, {}), gru_example("backwards", 4, 5, 2, kReverse),
                 gru_example("multiples of 16", 2, 3, 16, {}), gru_example("one step", 1, 2, 4, kReverse),
                 gru_example("odd width", 2, 5, 17, {})};
  return op;
}

OpDef gru_backward_op() {
  OpDef op;
  op.name = "gru_backward";
  op.dimensions = recurrent_dimensions;
  op.summary = "Gradients of gru with respect to projected, to u (see gru) and to its initial state.";
  op.inputs = {"output_gradient", "weight", "initial_hidden", "output", "gates"};
  op.outputs = {"projected_gradient", "recurrent_gradient", "initial_hidden_gradient"};
  op.attributes = {reverse_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_types(context, 1);
    context.require_rank(0, 3);
    const Shape& states = context.shape(0);
    const int64_t steps = states[0], batch = states[1], width = states[2];
    require_shape(context, 1, {3 * width, width});
    require_shape(context, 2, {batch, width});
    require_shape(context, 3, states);
    require_shape(context, 4, {steps, batch, 4 * width});
    const TensorType gates = f32({steps, batch, 3 * width});
    return {gates, gates, f32({batch, width})};
  };
  op.flops = [](const std::vector<TensorType>& inputs, const auto&, const Attributes&) {
    return step_flops(inputs[0].shape, 3, 24);
  };
  op.examples = {gru_backward_example("three steps", 3, 2, 5, {}), gru_backward_example("backwards", 4, 5, 2, kReverse),
                 gru_backward_example("multiples of 16", 2, 3, 16, {}),
                 gru_backward_example("one step", 1, 2, 4, kReverse), gru_backward_example("odd width", 2, 5, 17, {})};
  return op;
}

void require_layer(const Graph& graph, const char* op, const std::string& name, ValueId input,
                   const RecurrentWeights& weights) {
  const Shape &x = graph.shape(input), &w = graph.shape(weights.input);
  if (x.rank() == 3 && w.rank() == 2 && x[2] == w[1]) return;
  fail(ErrorKind::shape,
       "[{}] '{}': wants an input (steps, batch, features) and weights of as many columns, got '{}' "
       "{} and '{}' {}",
       op, name, graph.value(input).name, to_string(x), graph.value(weights.input).name, to_string(w));
}

/// input [T,N,C] times the input weights: [T,N,rows].
ValueId project(Graph& graph, ValueId input, ValueId weight, const std::string& name) {
  const Shape shape = graph.shape(input);
  const ValueId rows = reshape(graph, input, {shape[0] * shape[1], shape[2]});
  const ValueId product = matmul(graph, rows, weight, false, /*transpose_b=*/true, name + ".projected.rows");
  return reshape(graph, product, {shape[0], shape[1], -1}, name + ".projected");
}

ValueId given_or_zero(Graph& graph, ValueId value, const Shape& shape) {
  return value.valid() ? value : constant(graph, shape, 0);
}

/// What the walk over all steps ends with: [T,N,H] -> [N,H].
ValueId last_step(Graph& graph, ValueId states, bool reverse, const std::string& name) {
  const Shape shape = graph.shape(states);
  const int64_t step = reverse ? 0 : shape[0] - 1;
  const ValueId one = slice(graph, states, {step, 0, 0}, {step + 1, shape[1], shape[2]});
  return reshape(graph, one, {shape[1], shape[2]}, name);
}

}  // namespace

void add_rnn_ops(OpRegistry& registry) {
  for (OpDef op : {lstm_op(), lstm_backward_op(), gru_op(), gru_backward_op()}) {
    op.precision = PrecisionRule::reduced;
    op.f32_inputs = {0, 2, 3, 4, 5};  // all but the weight
    registry.add(of_work(work::kRecurrent, std::move(op)));
  }
}

LstmResult lstm(Graph& graph, ValueId input, const RecurrentWeights& weights, ValueId initial_hidden,
                ValueId initial_cell, bool reverse, const std::string& name) {
  const std::string hint = name.empty() ? "lstm" : name;
  require_layer(graph, "lstm", hint, input, weights);
  const Shape bias_shape{graph.shape(weights.input)[0]}, state{graph.shape(input)[1], bias_shape[0] / 4};
  ValueId bias = given_or_zero(graph, weights.input_bias, bias_shape);
  if (weights.recurrent_bias.valid()) bias = add(graph, bias, weights.recurrent_bias, hint + ".bias");
  const ValueId projected = project(graph, input, weights.input, hint);
  const std::vector<ValueId> results =
      graph.add_node("lstm",
                     {projected, weights.recurrent, bias, given_or_zero(graph, initial_hidden, state),
                      given_or_zero(graph, initial_cell, state)},
                     {{"reverse", reverse}}, hint);
  return {results[0], last_step(graph, results[0], reverse, hint + ".hidden"),
          last_step(graph, results[1], reverse, hint + ".cell")};
}

GruResult gru(Graph& graph, ValueId input, const RecurrentWeights& weights, ValueId initial_hidden, bool reverse,
              const std::string& name) {
  const std::string hint = name.empty() ? "gru" : name;
  require_layer(graph, "gru", hint, input, weights);
  const Shape bias_shape{graph.shape(weights.input)[0]}, state{graph.shape(input)[1], bias_shape[0] / 3};
  const ValueId projected = project(graph, input, weights.input, hint);
  const ValueId output =
      graph.add("gru",
                {projected, weights.recurrent, given_or_zero(graph, weights.input_bias, bias_shape),
                 given_or_zero(graph, weights.recurrent_bias, bias_shape), given_or_zero(graph, initial_hidden, state)},
                {{"reverse", reverse}}, hint);
  return {output, last_step(graph, output, reverse, hint + ".hidden")};
}

}  // namespace weft::ops
