// Losses, as ONNX has them for training graphs.
#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

/// -weight[label] log_probability[label], and the weights: of axis 1, with zeros for labels that are ignored.
struct Terms {
  ValueId losses, weights;
};

Terms terms_of(NodeContext& node, ValueId log_probabilities) {
  Graph& graph = node.graph();
  const Shape shape = graph.shape(log_probabilities);
  if (shape.rank() < 2) node.fail(fmt::format("wants classes as axis 1, got {}", to_string(shape)));
  std::vector<int64_t> expected = shape.dims();
  expected.erase(expected.begin() + 1);
  if (node.shape(1) != Shape(expected))
    node.fail(fmt::format("wants a label for each of {}, got {}", to_string(shape), to_string(node.shape(1))));
  if (node.has(2) && node.shape(2) != Shape{shape[1]})
    node.fail(fmt::format("wants a weight for each of {} classes, got {}", shape[1], to_string(node.shape(2))));
  ValueId labels = node.value(1);
  if (graph.type(labels).dtype != DType::i64) labels = ops::cast(graph, labels, DType::i64);
  ValueId ignored{};
  if (node.has_attribute("ignore_index")) {
    const ValueId index = ops::constant(graph, DType::i64, Shape{}, node.integer("ignore_index"));
    ignored = as_boolean(graph, ops::equal(graph, labels, index));
    labels = ops::where(graph, ignored, ops::constant(graph, DType::i64, Shape{}, int64_t{0}), labels);
  }
  ValueId losses = ops::gather(graph, log_probabilities, unsqueeze(graph, labels, {1}), 1);
  losses = ops::negate(graph, squeeze(graph, losses, {1}));
  ValueId weights = ops::constant(graph, graph.shape(losses), 1);
  if (node.has(2)) {
    ValueId table = node.value(2);
    if (graph.type(table).dtype != DType::f32) table = ops::cast(graph, table, DType::f32);
    weights = ops::take(graph, table, labels, 0);
  }
  if (ignored.valid()) weights = ops::where(graph, ignored, ops::constant(graph, Shape{}, 0), weights);
  return {ops::multiply(graph, losses, weights), weights};
}

ValueId reduced(NodeContext& node, const Terms& terms) {
  Graph& graph = node.graph();
  const std::string reduction = node.text("reduction", "mean");
  if (reduction == "none") return terms.losses;
  const ValueId sum = ops::reduce_sum(graph, terms.losses);
  if (reduction == "sum") return sum;
  if (reduction != "mean") node.fail("has the unknown reduction '" + reduction + "'");
  return ops::divide(graph, sum, ops::reduce_sum(graph, terms.weights), node.hint());
}

ValueId as_reals(Graph& graph, ValueId x) {
  return graph.type(x).dtype == DType::f32 ? x : ops::cast(graph, x, DType::f32);
}

std::vector<ValueId> convert_nll(NodeContext& node) {
  Graph& graph = node.graph();
  const ValueId loss = reduced(node, terms_of(node, as_reals(graph, node.value(0))));
  return {node.dtype(0) == DType::f32 ? loss : ops::cast(graph, loss, node.dtype(0))};
}

std::vector<ValueId> convert_cross_entropy(NodeContext& node) {
  Graph& graph = node.graph();
  if (node.rank(0) < 2) node.fail(fmt::format("wants classes as axis 1, got {}", to_string(node.shape(0))));
  const ValueId log = ops::log_softmax(graph, as_reals(graph, node.value(0)), 1);
  const ValueId loss = reduced(node, terms_of(node, log));
  const auto as_given = [&](ValueId x) { return node.dtype(0) == DType::f32 ? x : ops::cast(graph, x, node.dtype(0)); };
  return {as_given(loss), as_given(log)};
}

}  // namespace

void add_losses(OperatorTable& table) {
  table.add("loss", "NegativeLogLikelihoodLoss", convert_nll);
  table.add("loss", "SoftmaxCrossEntropyLoss", convert_cross_entropy);
}

}  // namespace weft::onnx
