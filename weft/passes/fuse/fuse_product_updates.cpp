#include "weft/passes/fuse/fuse_product_updates.h"

#include "weft/ops/update/product_update.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

constexpr int64_t kCachedBytes = 1 << 20;
constexpr double kLeastGain = 0.9;

/// Of the fused node.
std::vector<ValueId> operands_of(const Node& update, const Node& product) {
  std::vector<ValueId> operands = {update.inputs[0], product.inputs[0], product.inputs[1]};
  operands.insert(operands.end(), update.inputs.begin() + 2, update.inputs.end());
  return operands;
}

class ProductUpdates {
 public:
  ProductUpdates(const Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), users_(find_users(graph)), is_result_(find_results(graph)) {}

  /// The product that the update may compute itself, or null.
  const Node* find(NodeId id) const {
    const Node& update = graph_.node(id);
    if (update.op->name != "sgd_update") return nullptr;
    const ValueId gradient = update.inputs[1];
    const Node* const product = graph_.producer(gradient);
    if (product == nullptr || product->op->name != "matmul") return nullptr;
    if (users_[index_of(gradient)].size() != 1 || is_result_[index_of(gradient)]) return nullptr;
    if (!product->attributes.boolean("transpose_a") || product->attributes.boolean("transpose_b")) return nullptr;
    for (const ValueId rows : product->inputs)
      if (graph_.shape(rows).rank() != 2) return nullptr;
    return pays(id, graph_.value(gradient).producer) ? product : nullptr;
  }

 private:
  /// Predicted to be faster by more than a prediction errs, of gradients that leave the near caches.
  bool pays(NodeId update, NodeId product) const {
    const TensorType& gradient = graph_.type(graph_.node(product).outputs[0]);
    if (gradient.bytes() < kCachedBytes) return false;
    const auto seconds = [&](const NodeSignature& node) { return context_.seconds(node); };
    const double apart = seconds(signature_of(graph_, update)) + seconds(signature_of(graph_, product));
    return seconds(signature_of_fused(update, product)) < kLeastGain * apart;
  }

  NodeSignature signature_of_fused(NodeId update, NodeId product) const {
    NodeSignature signature = signature_of(graph_, update);
    signature.op = &graph_.registry().get(ops::kProductSgdUpdate);
    signature.inputs.clear();
    for (const ValueId input : operands_of(graph_.node(update), graph_.node(product)))
      signature.inputs.push_back(graph_.type(input));
    return signature;
  }

  const Graph& graph_;
  const PassContext& context_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
};

}  // namespace

Graph fuse_product_updates(const Graph& graph, const PassContext& context) {
  const ProductUpdates updates(graph, context);
  std::vector<const Node*> product_of(graph.nodes().size(), nullptr);
  std::vector<bool> is_gone(graph.nodes().size(), false);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    product_of[index] = updates.find(node_at(index));
    if (product_of[index] != nullptr) is_gone[index_of(graph.value(product_of[index]->outputs[0]).producer)] = true;
  }
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    if (is_gone[index]) continue;
    const Node& update = graph.nodes()[index];
    if (product_of[index] == nullptr) {
      rewriter.copy(node_at(index));
      continue;
    }
    const auto results =
        rewriter.result().add_node(ops::kProductSgdUpdate, rewriter.map(operands_of(update, *product_of[index])),
                                   update.attributes, graph.node_name(node_at(index)));
    for (size_t output = 0; output < results.size(); ++output)
      rewriter.replace(update.outputs[output], results[output]);
  }
  return rewriter.finish();
}

}  // namespace weft::passes
