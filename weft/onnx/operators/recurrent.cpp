// Recurrent layers. What weft's own ops compute (the formulas of PyTorch) becomes theirs; other activations, peepholes,
// clipping and lengths per sample are composed, step by step.
#include <algorithm>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

struct Layer {
  std::string kind;  // "LSTM", "GRU", "RNN"
  int64_t gates = 1, hidden = 0, steps = 0, batch = 0, directions = 1;
  bool batch_first = false, starts_reversed = false;
  double clip = 0;
  std::vector<std::string> activations;
  std::vector<double> alphas, betas;
  bool input_forget = false;          // of an LSTM: the forget gate is one minus the input gate
  bool resets_after_product = false;  // of a GRU: PyTorch's form
};

/// The first `count` rows from `start` on.
ValueId rows(Graph& graph, ValueId x, int64_t start, int64_t count) {
  std::vector<int64_t> starts(static_cast<size_t>(graph.shape(x).rank()), 0), ends = graph.shape(x).dims();
  starts[0] = start;
  ends[0] = start + count;
  return ops::slice(graph, x, starts, ends);
}

/// One direction's part of an operand whose first axis counts directions.
ValueId of_direction(Graph& graph, ValueId x, int64_t direction) {
  return squeeze(graph, rows(graph, x, direction, 1), {0});
}

/// Gates of `hidden` rows each in another order.
ValueId reordered(Graph& graph, ValueId x, int64_t hidden, const std::vector<int64_t>& order) {
  std::vector<ValueId> parts;
  for (const int64_t gate : order) parts.push_back(rows(graph, x, gate * hidden, hidden));
  return parts.size() == 1 ? parts[0] : ops::concat(graph, parts, 0);
}

struct Direction {
  ValueId input, recurrent, input_bias{}, recurrent_bias{}, peepholes{}, hidden{}, cell{};
  bool reverse = false;
};

struct Results {
  ValueId output, hidden, cell;  // [T,N,H], [N,H], [N,H]
};

ValueId activate(NodeContext& node, const std::string& name, ValueId x, double alpha, double beta) {
  Graph& graph = node.graph();
  const auto given = [](double value, double fallback) { return value == 0 ? fallback : value; };
  if (name == "Sigmoid") return ops::sigmoid(graph, x);
  if (name == "Tanh") return ops::tanh(graph, x);
  if (name == "Relu") return ops::relu(graph, x);
  if (name == "LeakyRelu") return ops::leaky_relu(graph, x, given(alpha, 0.01));
  if (name == "Elu") return ops::elu(graph, x, given(alpha, 1));
  if (name == "Softplus") return ops::softplus(graph, x);
  if (name == "Softsign") return ops::divide(graph, x, ops::add_scalar(graph, ops::absolute(graph, x), 1));
  if (name == "Affine") return ops::add_scalar(graph, ops::multiply_scalar(graph, x, given(alpha, 1)), beta);
  if (name == "ScaledTanh")
    return ops::multiply_scalar(graph, ops::tanh(graph, ops::multiply_scalar(graph, x, given(beta, 1))),
                                given(alpha, 1));
  if (name == "HardSigmoid")
    return ops::clip(graph, ops::add_scalar(graph, ops::multiply_scalar(graph, x, given(alpha, 0.2)), given(beta, 0.5)),
                     0, 1);
  node.fail("has the unknown activation '" + name + "'");
}

class Composer {
 public:
  Composer(NodeContext& node, const Layer& layer, int64_t direction)
      : node_(node), graph_(node.graph()), layer_(layer) {
    const size_t per_direction = layer.kind == "LSTM" ? 3 : layer.kind == "GRU" ? 2 : 1;
    first_ = static_cast<size_t>(direction) * per_direction;
  }

  /// input [T,N,C]
  Results run(ValueId input, const Direction& weights) {
    const int64_t steps = layer_.steps, hidden = layer_.hidden;
    const ValueId projected = projection(input, weights);
    ValueId h = weights.hidden, c = weights.cell;
    std::vector<ValueId> outputs(static_cast<size_t>(steps));
    for (int64_t turn = 0; turn < steps; ++turn) {
      const int64_t step = weights.reverse ? steps - 1 - turn : turn;
      const ValueId x = squeeze(graph_, rows(graph_, projected, step, 1), {0});
      ValueId next_h, next_c = c;
      if (layer_.kind == "LSTM")
        std::tie(next_h, next_c) = lstm(x, h, c, weights);
      else if (layer_.kind == "GRU")
        next_h = gru(x, h, weights);
      else
        next_h = f(0, clipped(ops::add(graph_, x, recurrent(h, weights, 0, hidden))));
      ValueId y = next_h;
      if (node_.has(4)) {
        const ValueId is_inside = inside(step);
        y = ops::where(graph_, is_inside, next_h, scalar_like(graph_, next_h, 0));
        next_h = ops::where(graph_, is_inside, next_h, h);
        if (c.valid()) next_c = ops::where(graph_, is_inside, next_c, c);
      }
      outputs[static_cast<size_t>(step)] = unsqueeze(graph_, y, {0});
      h = next_h;
      c = next_c;
    }
    return {steps == 1 ? outputs[0] : ops::concat(graph_, outputs, 0), h, c};
  }

 private:
  ValueId f(size_t index, ValueId x) {
    const auto of = [&](const std::vector<double>& values) {
      return first_ + index < values.size() ? values[first_ + index] : 0;
    };
    return activate(node_, layer_.activations[first_ + index], x, of(layer_.alphas), of(layer_.betas));
  }

  ValueId clipped(ValueId x) { return layer_.clip > 0 ? ops::clip(graph_, x, -layer_.clip, layer_.clip) : x; }

  /// W x + the biases that are added outside of any reset, of all steps at once: [T,N,gates H].
  ValueId projection(ValueId input, const Direction& weights) {
    ValueId result = ops::matmul(graph_, input, weights.input, false, true);
    if (weights.input_bias.valid()) result = ops::add(graph_, result, weights.input_bias);
    if (!weights.recurrent_bias.valid()) return result;
    ValueId bias = weights.recurrent_bias;
    if (layer_.kind == "GRU" && layer_.resets_after_product) {
      // The last gate's is reset with its product.
      const ValueId zeros = ops::constant(graph_, Shape{layer_.hidden}, 0);
      bias = ops::concat(graph_, {rows(graph_, bias, 0, 2 * layer_.hidden), zeros}, 0);
    }
    return ops::add(graph_, result, bias);
  }

  /// h times the rows of the recurrent weights from gate on.
  ValueId recurrent(ValueId h, const Direction& weights, int64_t gate, int64_t count) {
    return ops::matmul(graph_, h, rows(graph_, weights.recurrent, gate * layer_.hidden, count), false, true);
  }

  ValueId gate(ValueId x, int64_t index) {
    const Shape shape = graph_.shape(x);
    return ops::slice(graph_, x, {0, index * layer_.hidden}, {shape[0], (index + 1) * layer_.hidden});
  }

  ValueId peep(const Direction& weights, int64_t index, ValueId c, ValueId to) {
    if (!weights.peepholes.valid()) return to;
    return ops::add(graph_, to,
                    ops::multiply(graph_, c, rows(graph_, weights.peepholes, index * layer_.hidden, layer_.hidden)));
  }

  /// ONNX's order of gates: i, o, f, c; of peepholes: i, o, f.
  std::pair<ValueId, ValueId> lstm(ValueId x, ValueId h, ValueId c, const Direction& weights) {
    const ValueId sums = ops::add(graph_, x, recurrent(h, weights, 0, 4 * layer_.hidden));
    const ValueId i = f(0, clipped(peep(weights, 0, c, gate(sums, 0))));
    const ValueId forget = layer_.input_forget ? ops::add_scalar(graph_, ops::negate(graph_, i), 1)
                                               : f(0, clipped(peep(weights, 2, c, gate(sums, 2))));
    const ValueId candidate = f(1, clipped(gate(sums, 3)));
    const ValueId next_c = ops::add(graph_, ops::multiply(graph_, forget, c), ops::multiply(graph_, i, candidate));
    const ValueId o = f(0, clipped(peep(weights, 1, next_c, gate(sums, 1))));
    return {ops::multiply(graph_, o, f(2, next_c)), next_c};
  }

  /// ONNX's order of gates: z, r, h.
  ValueId gru(ValueId x, ValueId h, const Direction& weights) {
    const int64_t hidden = layer_.hidden;
    const ValueId both = recurrent(h, weights, 0, 2 * hidden);
    const ValueId z = f(0, clipped(ops::add(graph_, gate(x, 0), gate(both, 0))));
    const ValueId r = f(0, clipped(ops::add(graph_, gate(x, 1), gate(both, 1))));
    ValueId inner;
    if (layer_.resets_after_product) {
      ValueId product = recurrent(h, weights, 2, hidden);
      if (weights.recurrent_bias.valid())
        product = ops::add(graph_, product, rows(graph_, weights.recurrent_bias, 2 * hidden, hidden));
      inner = ops::multiply(graph_, r, product);
    } else {
      inner = recurrent(ops::multiply(graph_, r, h), weights, 2, hidden);
    }
    const ValueId candidate = f(1, clipped(ops::add(graph_, gate(x, 2), inner)));
    const ValueId keeps = ops::multiply(graph_, z, h);
    return ops::add(graph_, ops::multiply(graph_, ops::add_scalar(graph_, ops::negate(graph_, z), 1), candidate),
                    keeps);
  }

  /// [N,1]: whether the step belongs to the sample.
  ValueId inside(int64_t step) {
    ValueId lengths = node_.value(4);
    if (graph_.type(lengths).dtype != DType::i64) lengths = ops::cast(graph_, lengths, DType::i64);
    lengths = ops::reshape(graph_, lengths, {layer_.batch, 1});
    return as_boolean(graph_, ops::greater(graph_, lengths, ops::constant(graph_, DType::i64, Shape{}, step)));
  }

  NodeContext& node_;
  Graph& graph_;
  const Layer& layer_;
  size_t first_ = 0;
};

Layer find_layer(NodeContext& node, const std::string& kind) {
  Layer layer;
  layer.kind = kind;
  layer.gates = kind == "LSTM" ? 4 : kind == "GRU" ? 3 : 1;
  layer.batch_first = node.integer("layout", 0) != 0;
  if (node.rank(0) != 3 || node.rank(1) != 3 || node.rank(2) != 3) node.fail("wants operands of three dimensions");
  layer.steps = node.shape(0)[layer.batch_first ? 1 : 0];
  layer.batch = node.shape(0)[layer.batch_first ? 0 : 1];
  layer.hidden = node.shape(2)[2];
  layer.directions = node.shape(1)[0];
  const std::string direction = node.text("direction", "forward");
  layer.starts_reversed = direction == "reverse";
  if (layer.directions != (direction == "bidirectional" ? 2 : 1))
    node.fail("has weights for another number of directions");
  if (node.shape(2)[1] != layer.gates * layer.hidden) node.fail("has recurrent weights of another number of gates");
  layer.clip = node.real("clip", 0);
  layer.input_forget = node.integer("input_forget", 0) != 0;
  layer.resets_after_product = node.integer("linear_before_reset", 0) != 0;
  layer.activations = node.texts("activations");
  layer.alphas = node.reals("activation_alpha");
  layer.betas = node.reals("activation_beta");
  const std::vector<std::string> standard = kind == "LSTM"  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                            : kind == "GRU" ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                            : std::vector<std::string>{"Tanh"};
  if (layer.activations.empty())
    for (int64_t each = 0; each < layer.directions; ++each)
      layer.activations.insert(layer.activations.end(), standard.begin(), standard.end());
  if (layer.activations.size() != standard.size() * static_cast<size_t>(layer.directions))
    node.fail(fmt::format("wants {} activations, got {}", standard.size() * static_cast<size_t>(layer.directions),
                          layer.activations.size()));
  if (layer.steps < 1) node.fail("has no steps");
  return layer;
}

/// Whether weft's op computes it: standard activations, nothing clipped, no peepholes, all samples of all steps.
bool has_own_op(const NodeContext& node, const Layer& layer) {
  if (layer.kind == "RNN" || layer.clip > 0 || node.has(4) || layer.input_forget) return false;
  if (layer.kind == "GRU" && !layer.resets_after_product) return false;
  if (layer.kind == "LSTM" && node.has(7)) return false;
  for (size_t index = 0; index < layer.activations.size(); ++index) {
    const size_t within = index % (layer.kind == "LSTM" ? 3 : 2);
    if (layer.activations[index] != (within == 0 ? "Sigmoid" : "Tanh")) return false;
  }
  return true;
}

Results run_own(Graph& graph, const Layer& layer, ValueId input, const Direction& weights, const std::string& name) {
  // weft's order: i, f, g, o; and r, z, n.
  const std::vector<int64_t> order =
      layer.kind == "LSTM" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{1, 0, 2};
  const auto in_order = [&](ValueId x) { return x.valid() ? reordered(graph, x, layer.hidden, order) : x; };
  const ops::RecurrentWeights own{in_order(weights.input), in_order(weights.recurrent), in_order(weights.input_bias),
                                  in_order(weights.recurrent_bias)};
  if (layer.kind == "LSTM") {
    const auto result = ops::lstm(graph, input, own, weights.hidden, weights.cell, weights.reverse, name);
    return {result.output, result.hidden, result.cell};
  }
  const auto result = ops::gru(graph, input, own, weights.hidden, weights.reverse, name);
  return {result.output, result.hidden, {}};
}

std::vector<ValueId> convert_layer(NodeContext& node, const std::string& kind) {
  Graph& graph = node.graph();
  const DType dtype = node.dtype(0);
  if (dtype != DType::f32) node.fail(fmt::format("computes in {}, weft's recurrent layers do in f32", name_of(dtype)));
  const Layer layer = find_layer(node, kind);
  ValueId input = node.value(0);
  if (layer.batch_first) input = ops::transpose(graph, input, {1, 0, 2});
  const bool own = has_own_op(node, layer);
  std::vector<ValueId> outputs, hidden, cells;
  for (int64_t direction = 0; direction < layer.directions; ++direction) {
    Direction weights;
    weights.reverse = layer.starts_reversed || direction == 1;
    weights.input = of_direction(graph, node.value(1), direction);
    weights.recurrent = of_direction(graph, node.value(2), direction);
    if (node.has(3)) {
      const ValueId bias = of_direction(graph, node.value(3), direction);
      weights.input_bias = rows(graph, bias, 0, layer.gates * layer.hidden);
      weights.recurrent_bias = rows(graph, bias, layer.gates * layer.hidden, layer.gates * layer.hidden);
    }
    const auto initial = [&](int at) {
      if (!node.has(at)) return ops::constant(graph, Shape{layer.batch, layer.hidden}, 0);
      ValueId state = node.value(at);
      if (layer.batch_first) state = ops::transpose(graph, state, {1, 0, 2});
      return of_direction(graph, state, direction);
    };
    weights.hidden = initial(5);
    if (kind == "LSTM") weights.cell = initial(6);
    if (kind == "LSTM" && node.has(7)) weights.peepholes = of_direction(graph, node.value(7), direction);
    const Results results =
        own ? run_own(graph, layer, input, weights, node.hint()) : Composer(node, layer, direction).run(input, weights);
    outputs.push_back(unsqueeze(graph, results.output, {1}));  // [T,1,N,H]
    hidden.push_back(unsqueeze(graph, results.hidden, {0}));   // [1,N,H]
    if (kind == "LSTM") cells.push_back(unsqueeze(graph, results.cell, {0}));
  }
  const auto joined = [&](const std::vector<ValueId>& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : ops::concat(graph, parts, axis);
  };
  ValueId output = joined(outputs, 1), last = joined(hidden, 0);
  ValueId cell = cells.empty() ? ValueId{} : joined(cells, 0);
  if (layer.batch_first) {
    output = ops::transpose(graph, output, {2, 0, 1, 3});  // [N,T,directions,H]
    last = ops::transpose(graph, last, {1, 0, 2});
    if (cell.valid()) cell = ops::transpose(graph, cell, {1, 0, 2});
  }
  return {output, last, cell};
}

}  // namespace

void add_recurrent(OperatorTable& table) {
  for (const char* kind : {"RNN", "GRU", "LSTM"})
    table.add("recurrent", kind, [kind](NodeContext& node) { return convert_layer(node, kind); });
}

}  // namespace weft::onnx
