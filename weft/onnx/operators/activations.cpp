// Activations, and softmax with its like.
#include <cmath>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

/// Of a real operand.
Convert activation(std::function<ValueId(NodeContext&, Graph&, ValueId)> function) {
  return [function = std::move(function)](NodeContext& node) -> std::vector<ValueId> {
    return {computed_in_reals(node.graph(), node.value(0), [&](ValueId x) { return function(node, node.graph(), x); })};
  };
}

std::vector<ValueId> convert_relu(NodeContext& node) {
  Graph& graph = node.graph();
  const ValueId x = node.value(0);
  if (is_compute_dtype(node.dtype(0))) return {ops::relu(graph, x, node.hint())};
  return {ops::maximum(graph, x, scalar_like(graph, x, 0), node.hint())};
}

ValueId where_above(Graph& graph, ValueId x, double threshold, ValueId above, ValueId below, const std::string& name) {
  const ValueId is_above = as_boolean(graph, ops::greater(graph, x, scalar_like(graph, x, threshold)));
  return ops::where(graph, is_above, above, below, name);
}

std::vector<ValueId> convert_prelu(NodeContext& node) {
  Graph& graph = node.graph();
  const ValueId x = node.value(0);
  ValueId slope = node.value(1);
  if (graph.type(slope).dtype != graph.type(x).dtype) slope = ops::cast(graph, slope, graph.type(x).dtype);
  // Before version 7 a slope per channel had no dimensions behind it.
  if (node.opset() < 7 && node.rank(1) == 1 && node.rank(0) > 2) {
    std::vector<int64_t> shape = {node.shape(1)[0]};
    shape.insert(shape.end(), static_cast<size_t>(node.rank(0)) - 2, 1);
    slope = ops::reshape(graph, slope, shape);
  }
  const ValueId negative = ops::multiply(graph, x, slope);
  const ValueId is_above = as_boolean(graph, ops::greater(graph, x, scalar_like(graph, x, 0)));
  return {ops::where(graph, is_above, x, negative, node.hint())};
}

/// Before version 13 the operand is flattened to two dimensions at the axis.
std::vector<ValueId> convert_softmax(NodeContext& node, bool is_log, bool is_hard) {
  Graph& graph = node.graph();
  const bool flattens = node.opset() < 13;
  const int64_t axis = resolve_axis(node, node.integer("axis", flattens ? 1 : -1), node.rank(0));
  const auto computed = is_hard ? computed_in_f32 : computed_in_reals;
  const ValueId result = computed(graph, node.value(0), [&](ValueId x) {
    const Shape shape = graph.shape(x);
    const ValueId inner = flattens ? flattened(graph, x, axis) : x;
    const int64_t along = flattens ? 1 : axis;
    ValueId y;
    if (is_hard) {
      const ValueId last = ops::argmax(graph, inner, along);
      const ValueId hot = ops::one_hot(graph, last, graph.shape(inner)[static_cast<int>(along)]);
      std::vector<int64_t> permutation = all_axes(graph.shape(inner).rank() - 1);
      permutation.insert(permutation.begin() + along, graph.shape(inner).rank() - 1);
      y = ops::transpose(graph, hot, permutation);
      if (graph.type(y).dtype != graph.type(x).dtype) y = ops::cast(graph, y, graph.type(x).dtype);
    } else {
      y = is_log ? ops::log_softmax(graph, inner, along, node.hint()) : ops::softmax(graph, inner, along, node.hint());
    }
    return flattens ? ops::reshape(graph, y, shape.dims()) : y;
  });
  return {result};
}

}  // namespace

void add_activations(OperatorTable& table) {
  const std::string family = "activation";
  table.add(family, "Relu", convert_relu);
  table.add(family, "PRelu", convert_prelu);
  table.add(family, "LeakyRelu", activation([](NodeContext& node, Graph& graph, ValueId x) {
              return ops::leaky_relu(graph, x, node.real("alpha", 0.01), node.hint());
            }));
  table.add(family, "Elu", activation([](NodeContext& node, Graph& graph, ValueId x) {
              return ops::elu(graph, x, node.real("alpha", 1), node.hint());
            }));
  table.add(family, "Selu", activation([](NodeContext& node, Graph& graph, ValueId x) {
              const double alpha = node.real("alpha", 1.67326319217681884765625);
              const double gamma = node.real("gamma", 1.05070102214813232421875);
              return ops::multiply_scalar(graph, ops::elu(graph, x, alpha), gamma, node.hint());
            }));
  table.add(family, "Celu", activation([](NodeContext& node, Graph& graph, ValueId x) {
              const double alpha = node.real("alpha", 1);
              const ValueId scaled = ops::multiply_scalar(graph, x, 1 / alpha);
              return ops::multiply_scalar(graph, ops::elu(graph, scaled, 1), alpha, node.hint());
            }));
  table.add(family, "ThresholdedRelu", activation([](NodeContext& node, Graph& graph, ValueId x) {
              return where_above(graph, x, node.real("alpha", 1), x, scalar_like(graph, x, 0), node.hint());
            }));
  table.add(family, "Sigmoid",
            activation([](NodeContext& node, Graph& graph, ValueId x) { return ops::sigmoid(graph, x, node.hint()); }));
  table.add(family, "HardSigmoid", activation([](NodeContext& node, Graph& graph, ValueId x) {
              const ValueId scaled = ops::multiply_scalar(graph, x, node.real("alpha", 0.2));
              return ops::clip(graph, ops::add_scalar(graph, scaled, node.real("beta", 0.5)), 0, 1, node.hint());
            }));
  table.add(family, "HardSwish", activation([](NodeContext& node, Graph& graph, ValueId x) {
              return ops::hardswish(graph, x, node.hint());
            }));
  table.add(family, "Tanh",
            activation([](NodeContext& node, Graph& graph, ValueId x) { return ops::tanh(graph, x, node.hint()); }));
  table.add(family, "Softplus", activation([](NodeContext& node, Graph& graph, ValueId x) {
              return ops::softplus(graph, x, node.hint());
            }));
  table.add(family, "Softsign", activation([](NodeContext& node, Graph& graph, ValueId x) {
              return ops::divide(graph, x, ops::add_scalar(graph, ops::absolute(graph, x), 1), node.hint());
            }));
  table.add(family, "Gelu", activation([](NodeContext& node, Graph& graph, ValueId x) {
              return ops::gelu(graph, x, node.text("approximate", "none") == "tanh", node.hint());
            }));
  table.add(family, "Mish", activation([](NodeContext& node, Graph& graph, ValueId x) {
              return ops::multiply(graph, x, ops::tanh(graph, ops::softplus(graph, x)), node.hint());
            }));
  table.add(family, "Swish", activation([](NodeContext& node, Graph& graph, ValueId x) {
              const double alpha = node.real("alpha", 1);
              if (alpha == 1) return ops::silu(graph, x, node.hint());
              return ops::multiply(graph, x, ops::sigmoid(graph, ops::multiply_scalar(graph, x, alpha)), node.hint());
            }));
  table.add(family, "SwiGLU", [](NodeContext& node) -> std::vector<ValueId> {
    Graph& graph = node.graph();
    const ValueId gate = node.value(0);
    const ValueId open = ops::sigmoid(graph, ops::multiply_scalar(graph, gate, node.real("alpha", 1)));
    return {ops::multiply(graph, ops::multiply(graph, gate, open), node.value(1), node.hint())};
  });
  table.add(family, "Shrink", activation([](NodeContext& node, Graph& graph, ValueId x) {
              const double bias = node.real("bias", 0), limit = node.real("lambd", 0.5);
              const ValueId above =
                  where_above(graph, x, limit, ops::add_scalar(graph, x, -bias), scalar_like(graph, x, 0), "");
              const ValueId is_below = as_boolean(graph, ops::less(graph, x, scalar_like(graph, x, -limit)));
              return ops::where(graph, is_below, ops::add_scalar(graph, x, bias), above, node.hint());
            }));
  table.add(family, "Softmax", [](NodeContext& node) { return convert_softmax(node, false, false); });
  table.add(family, "LogSoftmax", [](NodeContext& node) { return convert_softmax(node, true, false); });
  table.add(family, "Hardmax", [](NodeContext& node) { return convert_softmax(node, false, true); });
}

}  // namespace weft::onnx
