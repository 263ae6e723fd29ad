#include "weft/passes/fuse/pool_before_relu.h"

#include <optional>

#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

struct Swap {
  NodeId relu, pool;
  NodeId pool_gradient, relu_gradient;  // both invalid where there is no backward part
};

bool is_made_by_batch_norm(const Graph& graph, ValueId value) {
  const Node* node = graph.producer(value);
  return node != nullptr && (node->op->name == "batch_norm" || node->op->name == "batch_norm_inference");
}

/// fuse_batch_norm takes the relu of a norm, and of a norm plus a residual, at no cost.
bool joins_batch_norm(const Graph& graph, ValueId input) {
  if (is_made_by_batch_norm(graph, input)) return true;
  const Node* node = graph.producer(input);
  return node != nullptr && node->op->name == "add" &&
         (is_made_by_batch_norm(graph, node->inputs[0]) || is_made_by_batch_norm(graph, node->inputs[1]));
}

class PooledRelus {
 public:
  explicit PooledRelus(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), is_result_(find_results(graph)) {}

  std::optional<Swap> find(NodeId id) const {
    const Node& relu = graph_.node(id);
    if (relu.op->name != "relu" || joins_batch_norm(graph_, relu.inputs[0])) return std::nullopt;
    const ValueId activated = relu.outputs[0];
    if (is_result_[index_of(activated)]) return std::nullopt;
    Swap swap{.relu = id, .pool = {}, .pool_gradient = {}, .relu_gradient = {}};
    for (const NodeId user : users_[index_of(activated)])
      if (!take(swap, user)) return std::nullopt;
    return is_complete(swap) ? std::optional(swap) : std::nullopt;
  }

 private:
  /// Notes the reader of the relu; false where it is one too many or of another kind.
  bool take(Swap& swap, NodeId user) const {
    const std::string& op = graph_.node(user).op->name;
    NodeId* place = op == "max_pool2d"            ? &swap.pool
                    : op == "max_pool2d_backward" ? &swap.pool_gradient
                    : op == "relu_backward"       ? &swap.relu_gradient
                                                  : nullptr;
    if (place == nullptr || place->valid()) return false;
    *place = user;
    return true;
  }

  bool is_complete(const Swap& swap) const {
    if (!swap.pool.valid() || swap.pool_gradient.valid() != swap.relu_gradient.valid()) return false;
    const Node& pool = graph_.node(swap.pool);
    const ValueId activated = graph_.node(swap.relu).outputs[0], pooled = pool.outputs[0];
    if (2 * graph_.shape(pooled).elements() > graph_.shape(activated).elements()) return false;
    if (!swap.pool_gradient.valid()) return true;
    const Node &spread = graph_.node(swap.pool_gradient), &mask = graph_.node(swap.relu_gradient);
    return spread.inputs == std::vector{spread.inputs[0], activated, pooled} &&
           mask.inputs == std::vector{spread.outputs[0], activated} && is_read_once(spread.outputs[0]);
  }

  bool is_read_once(ValueId value) const { return users_[index_of(value)].size() == 1 && !is_result_[index_of(value)]; }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
};

void emit_pool(Rewriter& rewriter, const Swap& swap) {
  const Graph& graph = rewriter.source();
  const Node& pool = graph.node(swap.pool);
  const std::string& name = graph.node_name(swap.pool);
  const ValueId input = graph.node(swap.relu).inputs[0];
  const ValueId highest =
      rewriter.result().add("max_pool2d", {rewriter.map(input)}, pool.attributes, name + ".before_relu");
  rewriter.replace(graph.node(swap.relu).outputs[0], highest);  // for emit_gradient alone: nothing else reads the relu
  rewriter.replace(pool.outputs[0], rewriter.result().add("relu", {highest}, {}, name));
}

void emit_gradient(Rewriter& rewriter, const Swap& swap) {
  const Graph& graph = rewriter.source();
  const Node &spread = graph.node(swap.pool_gradient), &mask = graph.node(swap.relu_gradient);
  const ValueId input = rewriter.map(graph.node(swap.relu).inputs[0]);
  const ValueId highest = rewriter.map(graph.node(swap.relu).outputs[0]);
  const ValueId masked =
      rewriter.result().add("relu_backward", {rewriter.map(spread.inputs[0]), rewriter.map(spread.inputs[2])},
                            mask.attributes, graph.node_name(swap.relu_gradient));
  rewriter.replace(mask.outputs[0], rewriter.result().add("max_pool2d_backward", {masked, input, highest},
                                                          spread.attributes, graph.node_name(swap.pool_gradient)));
}

}  // namespace

Graph pool_before_relu(const Graph& graph) {
  const PooledRelus finder(graph);
  std::vector<std::optional<Swap>> swap_of(graph.nodes().size());
  for (size_t index = 0; index < graph.nodes().size(); ++index)
    if (const auto swap = finder.find(node_at(index)))
      for (const NodeId id : {swap->relu, swap->pool, swap->pool_gradient, swap->relu_gradient})
        if (id.valid()) swap_of[index_of(id)] = swap;
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = node_at(index);
    const auto& swap = swap_of[index];
    if (!swap)
      rewriter.copy(id);
    else if (id == swap->pool)
      emit_pool(rewriter, *swap);
    else if (id == swap->relu_gradient)
      emit_gradient(rewriter, *swap);
  }
  return rewriter.finish();
}

}  // namespace weft::passes
