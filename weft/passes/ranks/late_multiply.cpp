#include "weft/passes/ranks/late_multiply.h"

#include <algorithm>
#include <unordered_map>

#include "weft/graph/accumulation.h"
#include "weft/graph/collective.h"
#include "weft/passes/ranks/overlap_all_reduces.h"
#include "weft/passes/ranks/overlap_collectives.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// Of so many ranks' rows, in the type in which it will be computed, and travel.
NodeSignature product_of_rows(const Graph& graph, const Node& product, int64_t ranks, DType dtype) {
  NodeSignature node{product.op, "", {}, {}, product.attributes};
  for (const ValueId input : product.inputs) {
    std::vector<int64_t> dims = graph.shape(input).dims();
    dims[0] *= ranks;
    node.inputs.push_back({dtype, Shape(dims), {}});
  }
  node.outputs = {{graph.type(product.outputs[0]).dtype, graph.shape(product.outputs[0]), {}}};
  return node;
}

/// Where several batches add gradients before they are reduced, the sum; else null.
const Node* sum_of_batches(const Graph& graph, ValueId gradient) {
  const Node* const producer = graph.producer(gradient);
  return producer != nullptr && is_accumulation(*producer) ? producer : nullptr;
}

class LateMultiply {
 public:
  LateMultiply(const Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        users_(find_users(graph)),
        is_result_(find_results(graph)),
        rewriter_(graph),
        late_(graph.nodes().size()),
        shares_(graph.nodes().size()) {}

  Graph run() {
    std::vector<bool> is_gone(graph_.nodes().size(), false);  // what stands elsewhere
    std::vector<NodeId> emitted(graph_.nodes().size());       // in whose place: the all-reduce of that product
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      late_[index] = late_way(node_at(index));
      if (!late_[index]) continue;
      const Late& late = *late_[index];
      const size_t product = index_of(late.product);
      emitted[late.is_summed ? product : index] = node_at(index);
      is_gone[late.is_summed ? index : product] = true;
      late_products_[graph_.node(late.product).inputs[0]].push_back(node_at(index));
    }
    for (const GraphInput& input : graph_.inputs()) gather_shares(input.value);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const Node& node = graph_.nodes()[index];
      if (emitted[index].valid()) {
        emit(emitted[index]);
      } else if (is_gone[index]) {
        if (late_[index]) rewriter_.replace(node.outputs[0], rewriter_.map(node.inputs[0]));
      } else {
        rewriter_.copy(node_at(index));
        for (const ValueId output : node.outputs) gather_shares(output);
      }
    }
    return rewriter_.finish();
  }

 private:
  /// An all-reduce that goes: the product whose mean, or sum, over the ranks it is.
  struct Late {
    NodeId product;
    // Several batches add their products before the all-reduce. Then each adds that of all ranks' rows, and the sum
    // needs no exchange.
    bool is_summed = false;
  };

  std::optional<Late> late_way(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!is_all_reduce(node)) return std::nullopt;
    ValueId gradient = node.inputs[0];
    const Node* const sum = sum_of_batches(graph_, gradient);
    if (sum != nullptr) {
      const bool is_output = std::any_of(graph_.outputs().begin(), graph_.outputs().end(),
                                         [&](const GraphOutput& output) { return output.value == gradient; });
      if (users_[index_of(gradient)].size() != 1 || is_output) return std::nullopt;
      gradient = sum->inputs[1];
    }
    if (users_[index_of(gradient)].size() != 1 || is_result_[index_of(gradient)]) return std::nullopt;
    const auto seconds = late_multiply_seconds(graph_, node.inputs[0], context_.ranks, context_.precision.dtype,
                                               context_.threads, *context_.costs);
    if (!seconds || *seconds >= predicted_seconds(context_.ranks, graph_.type(gradient).bytes())) return std::nullopt;
    return Late{graph_.value(gradient).producer, sum != nullptr};
  }

  ValueId gathered(ValueId source, const std::string& name) {
    const auto [known, is_new] = gathered_.try_emplace(source);
    if (is_new)
      known->second =
          rewriter_.result().add(kAllGather, {rewriter_.map(source)}, {{"ranks", int64_t{context_.ranks.count}}}, name);
    return known->second;
  }

  /// Right where the value is there, so that the shares travel while the rest of the backward part is computed.
  void gather_shares(ValueId value) {
    const auto found = late_products_.find(value);
    if (found == late_products_.end()) return;
    for (const NodeId id : found->second) {
      const std::string& name = graph_.node_name(id);
      if (graph_.node(id).attributes.text("reduction") != "mean") {
        shares_[index_of(id)] = gathered(value, name + ".shares");
        continue;
      }
      Graph& result = rewriter_.result();  // divided here, where there are the fewest numbers
      const ValueId share = result.add("multiply_scalar", {rewriter_.map(value)},
                                       {{"value", 1.0 / context_.ranks.count}}, name + ".share");
      shares_[index_of(id)] =
          result.add(kAllGather, {share}, {{"ranks", int64_t{context_.ranks.count}}}, name + ".shares");
    }
  }

  void emit(NodeId id) {
    const Late& late = *late_[index_of(id)];
    const Node& product = graph_.node(late.product);
    const NodeId place = late.is_summed ? late.product : id;
    const ValueId b = gathered(product.inputs[1], graph_.node_name(id) + ".rows");
    rewriter_.replace(
        graph_.node(place).outputs[0],
        rewriter_.result().add("matmul", {shares_[index_of(id)], b}, product.attributes, graph_.node_name(place)));
  }

  const Graph& graph_;
  const PassContext& context_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
  Rewriter rewriter_;
  std::vector<std::optional<Late>> late_;                           // by the all-reduce
  std::unordered_map<ValueId, ValueId> gathered_;                   // by the value of the source
  std::unordered_map<ValueId, std::vector<NodeId>> late_products_;  // by the operand that is shared: their all-reduces
  std::vector<ValueId> shares_;                                     // by the all-reduce
};

}  // namespace

Graph late_multiply(const Graph& graph, const PassContext& context) {
  if (context.ranks.count <= 1 || !context.gathers_rows) return graph;
  return LateMultiply(graph, context).run();
}

std::optional<double> late_multiply_seconds(const Graph& graph, ValueId gradient, const Ranks& ranks, DType dtype,
                                            int threads, const CostModel& costs) {
  const Node* const sum = sum_of_batches(graph, gradient);
  const int64_t batches = sum != nullptr ? ranks.batches : 1;
  const Node* const product = graph.producer(sum != nullptr ? sum->inputs[1] : gradient);
  if (batches == 0 || product == nullptr || product->op->name != "matmul") return std::nullopt;
  if (!product->attributes.boolean("transpose_a") || product->attributes.boolean("transpose_b")) return std::nullopt;
  for (const ValueId input : product->inputs)
    if (graph.shape(input).rank() != 2 || graph.type(input).dtype != DType::f32) return std::nullopt;
  const NodeSignature all = product_of_rows(graph, *product, ranks.count, dtype);
  double seconds = costs.seconds(all, threads) - costs.seconds(product_of_rows(graph, *product, 1, dtype), threads);
  for (const TensorType& gathered : all.inputs) seconds += predicted_gather_seconds(ranks, gathered.bytes());
  return static_cast<double>(batches) * seconds;
}

}  // namespace weft::passes
