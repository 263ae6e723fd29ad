#include "weft/passes/fuse/fuse_bias.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "weft/graph/constant_node.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// A value of [channels] that `value` shows as [1,channels,1,1], or a constant of that shape; invalid where it is
/// neither.
ValueId find_bias(const Graph& graph, ValueId value, int64_t channels) {
  if (graph.shape(value) != Shape{1, channels, 1, 1}) return {};
  const Node* producer = graph.producer(value);
  if (producer == nullptr) return {};
  if (is_constant_tensor(*producer)) return value;
  if (producer->op->name != "reshape") return {};
  const ValueId bias = producer->inputs[0];
  return graph.shape(bias) == Shape{channels} ? bias : ValueId{};
}

/// Sums that take their bias: the addition stands for both, at its own place, where the bias is known.
struct Addition {
  NodeId convolution;
  ValueId bias;
};

class BiasFuser {
 public:
  explicit BiasFuser(const Graph& graph) : graph_(graph), users_(find_users(graph)), is_result_(find_results(graph)) {}

  Graph run() {
    std::unordered_map<int32_t, Addition> additions;  // by the node that adds
    std::vector<bool> joined(graph_.nodes().size(), false);
    for (size_t index = 0; index < graph_.nodes().size(); ++index)
      if (const auto addition = find(node_at(index))) {
        additions.emplace(static_cast<int32_t>(index), *addition);
        joined[index_of(addition->convolution)] = true;
      }
    Rewriter rewriter(graph_);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const NodeId id = node_at(index);
      if (const auto found = additions.find(id.index); found != additions.end())
        emit(rewriter, id, found->second);
      else if (!joined[index])
        rewriter.copy(id);
    }
    return rewriter.finish();
  }

 private:
  std::optional<Addition> find(NodeId id) const {
    const Node& sum = graph_.node(id);
    if (sum.op->name != "add") return std::nullopt;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const ValueId convolved = sum.inputs[side], other = sum.inputs[1 - side];
      const Node* convolution = graph_.producer(convolved);
      if (convolution == nullptr || convolution->op->name != "conv2d" || convolution->inputs.size() != 2) continue;
      if (users_[index_of(convolved)].size() != 1 || is_result_[index_of(convolved)]) continue;
      const ValueId bias = find_bias(graph_, other, graph_.shape(convolved)[1]);
      if (bias.valid()) return Addition{graph_.value(convolved).producer, bias};
    }
    return std::nullopt;
  }

  /// As [channels]: a constant is seen under another shape.
  ValueId bias_of(Rewriter& rewriter, ValueId bias) const {
    if (graph_.shape(bias).rank() == 1) return rewriter.map(bias);
    const ConstantData& data = *constant_of(*graph_.producer(bias));
    const TensorType type{data.type().dtype, Shape{data.type().elements()}, {}};
    return rewriter.result().add(kConstantTensor, {}, {{kConstantData, Constant(data.tensor().reinterpreted(type))}},
                                 graph_.value(bias).name);
  }

  void emit(Rewriter& rewriter, NodeId id, const Addition& addition) const {
    const Node& convolution = graph_.node(addition.convolution);
    std::vector<ValueId> operands = rewriter.map(convolution.inputs);
    operands.push_back(bias_of(rewriter, addition.bias));
    rewriter.replace(graph_.node(id).outputs[0], rewriter.result().add("conv2d", operands, convolution.attributes,
                                                                       graph_.node_name(addition.convolution)));
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
};

/// A sum over all but the channels, and the weights' gradient that reads the same operand.
struct Sum {
  NodeId weights, sum;
};

std::optional<Sum> find_sum(const Graph& graph, NodeId weights, const std::vector<std::vector<NodeId>>& users) {
  const Node& node = graph.node(weights);
  if (node.op->name != "conv2d_backward_weights" || node.attributes.boolean("bias_gradient")) return std::nullopt;
  const auto& readers = users[index_of(node.inputs[1])];
  const auto sum = std::find_if(readers.begin(), readers.end(), [&](NodeId reader) {
    const Node& other = graph.node(reader);
    return other.op->name == "reduce_sum" && other.attributes.integers("axes") == std::vector<int64_t>{0, 2, 3};
  });
  if (sum == readers.end()) return std::nullopt;
  // The joined node stands where the first of the two stood.
  const bool input_is_known = graph.value(node.inputs[0]).producer < std::min(weights, *sum);
  return input_is_known ? std::optional(Sum{weights, *sum}) : std::nullopt;
}

void emit_both(Rewriter& rewriter, const Sum& both) {
  const Graph& graph = rewriter.source();
  const Node &weights = graph.node(both.weights), &sum = graph.node(both.sum);
  Attributes attributes = weights.attributes;
  attributes.set("bias_gradient", true);
  const auto outputs = rewriter.result().add_node(weights.op->name, rewriter.map(weights.inputs), attributes,
                                                  graph.node_name(both.weights));
  rewriter.replace(weights.outputs[0], outputs[0]);
  const Shape& shape = graph.shape(sum.outputs[0]);
  rewriter.replace(sum.outputs[0], shape.rank() == 1
                                       ? outputs[1]
                                       : rewriter.result().add("reshape", {outputs[1]}, {{"shape", shape.dims()}},
                                                               graph.node_name(both.sum)));
}

Graph fuse_bias_gradients(const Graph& graph) {
  const auto users = find_users(graph);
  std::unordered_map<int32_t, Sum> at_first;
  std::vector<bool> joined(graph.nodes().size(), false);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const auto both = find_sum(graph, node_at(index), users);
    if (!both || joined[index_of(both->sum)]) continue;  // two convolutions may share a gradient
    joined[index] = joined[index_of(both->sum)] = true;
    at_first.emplace(std::min(both->weights, both->sum).index, *both);
  }
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    if (const auto found = at_first.find(static_cast<int32_t>(index)); found != at_first.end())
      emit_both(rewriter, found->second);
    else if (!joined[index])
      rewriter.copy(node_at(index));
  }
  return rewriter.finish();
}

}  // namespace

Graph fuse_bias(const Graph& graph) { return fuse_bias_gradients(BiasFuser(graph).run()); }

}  // namespace weft::passes
