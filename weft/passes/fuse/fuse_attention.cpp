#include "weft/passes/fuse/fuse_attention.h"

#include <algorithm>
#include <optional>

#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// Of one head, below which two products and a softmax are as fast.
constexpr int64_t kLeastScores = int64_t{128} * 128;
/// Of all heads, in the narrower type.
constexpr int64_t kLeastNarrowBytes = int64_t{64} << 20;
/// What causal_mask sets scores to must be so small that the softmax gives zero.
constexpr double kNothing = -1e20;

struct Attention {
  ValueId q, k, v, mask;  // mask: invalid: none
  double scale = 1;
  bool causal = false, transpose_k = true;
};

class AttentionFuser {
 public:
  AttentionFuser(const Graph& graph, DType precision)
      : graph_(graph), precision_(precision), users_(find_users(graph)), is_result_(find_results(graph)) {}

  Graph run() {
    Rewriter rewriter(graph_);
    bool has_fused = false;
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const auto attention = find(node_at(index));
      if (!attention) {
        rewriter.copy(node_at(index));
        continue;
      }
      has_fused = true;
      std::vector<ValueId> operands = rewriter.map(std::vector<ValueId>{attention->q, attention->k, attention->v});
      if (attention->mask.valid()) operands.push_back(rewriter.map(attention->mask));
      rewriter.replace(
          graph_.nodes()[index].outputs[0],
          rewriter.result().add(
              "fused_attention", operands,
              {{"scale", attention->scale}, {"causal", attention->causal}, {"transpose_k", attention->transpose_k}},
              graph_.node_name(node_at(index))));
    }
    Graph result = rewriter.finish();
    if (!has_fused) return graph_;
    return result;
  }

 private:
  /// The node of this op that makes the value, where nobody else reads it; null elsewhere.
  const Node* inner(ValueId value, const char* op) const {
    const Node* node = graph_.producer(value);
    if (node == nullptr || node->op->name != op) return nullptr;
    return users_[index_of(value)].size() == 1 && !is_result_[index_of(value)] ? node : nullptr;
  }

  /// The value behind a factor, which goes to the scale.
  ValueId without_factor(ValueId value, double& scale) const {
    const Node* node = graph_.producer(value);
    if (node == nullptr || node->op->name != "multiply_scalar") return value;
    scale *= node->attributes.real("value");
    return node->inputs[0];
  }

  /// Walks from the softmax's operand to the product of q and k. nullptr where something else stands between.
  const Node* find_scores(ValueId scores, Attention& attention) const {
    for (;;) {
      if (const Node* product = inner(scores, "matmul")) return product;
      if (const Node* masked = inner(scores, "causal_mask")) {
        if (masked->attributes.real("value") > kNothing) return nullptr;
        attention.causal = true;
        scores = masked->inputs[0];
      } else if (const Node* scaled = inner(scores, "multiply_scalar")) {
        // A mask below the factor would be scaled too.
        const Node* below = graph_.producer(scaled->inputs[0]);
        const bool is_of_product = below != nullptr && below->op->name == "matmul";
        if (!attention.mask.valid() && !is_of_product) return nullptr;
        attention.scale *= scaled->attributes.real("value");
        scores = scaled->inputs[0];
      } else if (const Node* sum = inner(scores, "add"); sum != nullptr && !attention.mask.valid()) {
        const size_t side = is_score(sum->inputs[0]) ? 0 : 1;
        if (!is_score(sum->inputs[side]) || graph_.shape(sum->inputs[side]) != graph_.shape(scores)) return nullptr;
        attention.mask = sum->inputs[1 - side];
        scores = sum->inputs[side];
      } else {
        return nullptr;
      }
    }
  }

  /// Whether the value is a product of matrices, or one with a factor or causal mask.
  bool is_score(ValueId value) const {
    for (const char* op : {"multiply_scalar", "causal_mask"})
      if (const Node* node = inner(value, op)) value = node->inputs[0];
    return inner(value, "matmul") != nullptr;
  }

  bool have_same_members(const Attention& attention) const {
    const Shape &q = graph_.shape(attention.q), &k = graph_.shape(attention.k), &v = graph_.shape(attention.v);
    return q.rank() == k.rank() && q.rank() == v.rank() && std::equal(q.begin(), q.end() - 2, k.begin()) &&
           std::equal(q.begin(), q.end() - 2, v.begin());
  }

  std::optional<Attention> find(NodeId id) const {
    const Node& product = graph_.node(id);
    if (product.op->name != "matmul" || !is_plain_product(product)) return std::nullopt;
    const Node* softmax = inner(product.inputs[0], "softmax");
    if (softmax == nullptr || product.attributes.boolean("transpose_b")) return std::nullopt;
    const Shape& shape = graph_.shape(softmax->inputs[0]);
    const int64_t axis = softmax->attributes.integer("axis");
    const int rank = shape.rank();
    if ((axis != -1 && axis != rank - 1) || graph_.type(product.outputs[0]).dtype != DType::f32) return std::nullopt;
    if (rank < 2 || shape[rank - 2] * shape[rank - 1] < kLeastScores) return std::nullopt;
    const bool is_narrow = precision_ != DType::f32;
    if (is_narrow && byte_size(precision_, shape.elements()) < kLeastNarrowBytes) return std::nullopt;
    Attention attention;
    const Node* scores = find_scores(softmax->inputs[0], attention);
    if (scores == nullptr || !is_plain_product(*scores)) return std::nullopt;
    attention.transpose_k = scores->attributes.boolean("transpose_b");
    attention.q = without_factor(scores->inputs[0], attention.scale);
    attention.k = without_factor(scores->inputs[1], attention.scale);
    attention.v = product.inputs[1];
    if (!have_same_members(attention) || (attention.causal && shape[rank - 2] > shape[rank - 1])) return std::nullopt;
    if (attention.mask.valid() && !is_mask(attention.mask, shape)) return std::nullopt;
    return attention;
  }

  /// In f32, with a number for each key: where it is repeated along the keys the softmax does not depend on it.
  bool is_mask(ValueId mask, const Shape& scores) const {
    const Shape& shape = graph_.shape(mask);
    return graph_.type(mask).dtype == DType::f32 && shape.rank() >= 1 && shape.rank() <= scores.rank() &&
           shape[shape.rank() - 1] == scores[scores.rank() - 1];
  }

  static bool is_plain_product(const Node& node) {
    return !node.attributes.boolean("transpose_a") && node.attributes.text("result_dtype") == "same";
  }

  const Graph& graph_;
  const DType precision_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
};

}  // namespace

Graph fuse_attention(const Graph& graph, DType precision) {
  const bool has_softmax = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                       [](const Node& node) { return node.op->name == "softmax"; });
  return has_softmax && graph.updates().empty() ? AttentionFuser(graph, precision).run() : graph;
}

}  // namespace weft::passes
