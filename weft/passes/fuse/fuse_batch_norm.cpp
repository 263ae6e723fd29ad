#include "weft/passes/fuse/fuse_batch_norm.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// What batch_norm calls the activation that the node, or the node whose gradient it is, applies; empty: none that it
/// has.
std::string activation_of(const Node& node) {
  const std::string& name = node.op->name;
  if (name == "relu" || name == "relu_backward") return "relu";
  const bool clips = name == "clip" || name == "clip_backward";
  return clips && node.attributes.real("low") == 0 && node.attributes.real("high") == 6 ? "relu6" : "";
}
bool is_gradient(const Node& node) { return node.op->name.ends_with("_backward"); }

struct ForwardFusion {
  NodeId norm;
  NodeId activation;
  ValueId residual;  // invalid: none
};

/// relu(norm) and relu(norm + residual) become one node, which stands as late as the residual forces it to; so do those
/// with relu6.
class ForwardFuser {
 public:
  explicit ForwardFuser(const Graph& graph)
      : graph_(graph), rewriter_(graph), users_(find_users(graph)), is_result_(find_results(graph)) {}

  Graph run() {
    const size_t count = graph_.nodes().size();
    fusion_of_.resize(count);
    is_emitted_.assign(count, false);
    for (size_t index = 0; index < count; ++index) find_fusion(node_at(index));
    for (size_t index = 0; index < count; ++index) {
      const auto& fusion = fusion_of_[index];
      const bool waits = fusion && fusion->norm == node_at(index) && fusion->residual.valid() &&
                         !rewriter_.is_mapped(fusion->residual);
      if (!waits) emit(node_at(index));
    }
    return rewriter_.finish();
  }

 private:
  /// The norm whose plain output is `value`, where nothing but one node reads it; invalid otherwise.
  NodeId fusable_norm(ValueId value) const {
    const Node* node = graph_.producer(value);
    if (node == nullptr || graph_.value(value).output_index != 0 || !is_read_once(value)) return {};
    const bool trains = node->op->name == "batch_norm", infers = node->op->name == "batch_norm_inference";
    if (!trains && !infers) return {};
    if (node->inputs.size() != (trains ? 3u : 5u) || node->attributes.text("activation") != "none") return {};
    return graph_.value(value).producer;
  }

  bool is_read_once(ValueId value) const { return users_[index_of(value)].size() == 1 && !is_result_[index_of(value)]; }

  void find_fusion(NodeId activation) {
    const Node& node = graph_.node(activation);
    if (is_gradient(node) || activation_of(node).empty()) return;
    const ValueId activated = node.inputs[0];
    if (const NodeId norm = fusable_norm(activated); norm.valid()) return record({norm, activation, {}}, {});
    const Node* sum = graph_.producer(activated);
    if (sum == nullptr || sum->op->name != "add" || !is_read_once(activated)) return;
    const ValueId a = sum->inputs[0], b = sum->inputs[1];
    if (graph_.shape(a) != graph_.shape(b)) return;
    const NodeId norm_a = fusable_norm(a), norm_b = fusable_norm(b);
    // Of two norms the later one adds the other's result: no node has to move.
    const bool take_a = norm_a.valid() && norm_a > norm_b;
    const ForwardFusion fusion{take_a ? norm_a : norm_b, activation, take_a ? b : a};
    if (fusion.norm.valid() && !depends_on(fusion.residual, fusion.norm))
      record(fusion, graph_.value(activated).producer);
  }

  void record(const ForwardFusion& fusion, NodeId sum) {
    fusion_of_[index_of(fusion.norm)] = fusion;
    fusion_of_[index_of(fusion.activation)] = fusion;
    if (sum.valid()) is_emitted_[index_of(sum)] = true;  // nothing reads it any more
  }

  bool depends_on(ValueId value, NodeId node) const {
    std::vector<ValueId> open{value};
    std::unordered_set<int32_t> seen;
    while (!open.empty()) {
      const NodeId producer = graph_.value(open.back()).producer;
      open.pop_back();
      if (producer == node) return true;
      if (producer < node || !seen.insert(producer.index).second) continue;
      const auto& inputs = graph_.node(producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return false;
  }

  void require(ValueId value) {
    if (!rewriter_.is_mapped(value)) emit(graph_.value(value).producer);
  }

  void emit(NodeId id) {
    const auto& fusion = fusion_of_[index_of(id)];
    if (fusion && id == fusion->activation) id = fusion->norm;
    if (is_emitted_[index_of(id)]) return;
    is_emitted_[index_of(id)] = true;
    for (const ValueId input : graph_.node(id).inputs) require(input);
    if (!fusion) return rewriter_.copy(id);
    const Node& norm = graph_.node(id);
    std::vector<ValueId> operands = rewriter_.map(norm.inputs);
    if (fusion->residual.valid()) {
      require(fusion->residual);
      operands.push_back(rewriter_.map(fusion->residual));
    }
    Attributes attributes = norm.attributes;
    const Node& activation = graph_.node(fusion->activation);
    attributes.set("activation", activation_of(activation));
    copy_with(rewriter_, id, operands, attributes);
    rewriter_.replace(activation.outputs[0], rewriter_.map(norm.outputs[0]));
  }

  const Graph& graph_;
  Rewriter rewriter_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
  std::vector<std::optional<ForwardFusion>> fusion_of_;  // per node: of norms and activations
  std::vector<bool> is_emitted_;
};

struct BackwardFusion {
  NodeId mask;            // the relu_backward or clip_backward
  NodeId norm;            // the batch_norm_backward
  bool has_residual;      // in the forward node: its mask cannot be computed again from the input alone
  bool others_read_mask;  // besides the norm
};

bool contains(const std::vector<ValueId>& values, size_t from, const std::vector<ValueId>& part) {
  return values.size() >= from + part.size() &&
         std::equal(part.begin(), part.end(), values.begin() + static_cast<std::ptrdiff_t>(from));
}

std::optional<BackwardFusion> find_backward(const Graph& graph, NodeId mask, const std::vector<NodeId>& users,
                                            bool is_result) {
  const std::string activation = activation_of(graph.node(mask));
  if (!is_gradient(graph.node(mask)) || activation.empty()) return std::nullopt;
  const ValueId masked = graph.node(mask).outputs[0], output = graph.node(mask).inputs[1];
  const Node* forward = graph.producer(output);
  if (forward == nullptr || forward->op->name != "batch_norm" || graph.value(output).output_index != 0 ||
      forward->attributes.text("activation") != activation)
    return std::nullopt;
  const std::vector<ValueId> saved{forward->inputs[0], forward->inputs[1], forward->inputs[2], forward->outputs[1],
                                   forward->outputs[2]};
  for (const NodeId user : users) {
    const Node& node = graph.node(user);
    if (node.op->name == "batch_norm_backward" && node.inputs.size() == 6 && node.inputs[0] == masked &&
        contains(node.inputs, 1, saved) && node.attributes.text("activation") == "none" &&
        !node.attributes.boolean("residual_gradient") &&
        node.attributes.real("epsilon") == forward->attributes.real("epsilon"))
      return BackwardFusion{mask, user, forward->inputs.size() > 3, is_result || users.size() > 1};
  }
  return std::nullopt;
}

void emit_backward(Rewriter& rewriter, const BackwardFusion& fusion) {
  const Graph& graph = rewriter.source();
  const Node &mask = graph.node(fusion.mask), &norm = graph.node(fusion.norm);
  std::vector<ValueId> operands = rewriter.map(norm.inputs);
  operands[0] = rewriter.map(mask.inputs[0]);
  if (fusion.has_residual) operands.push_back(rewriter.map(mask.inputs[1]));
  Attributes attributes = norm.attributes;
  attributes.set("activation", activation_of(mask));
  attributes.set("residual_gradient", fusion.others_read_mask);
  const auto outputs = rewriter.result().add_node(norm.op->name, operands, attributes, graph.node_name(fusion.norm));
  for (size_t index = 0; index < norm.outputs.size(); ++index) rewriter.replace(norm.outputs[index], outputs[index]);
  if (fusion.others_read_mask) rewriter.replace(mask.outputs[0], outputs.back());
}

Graph fuse_backward(const Graph& graph) {
  const auto users = find_users(graph);
  const std::vector<bool> is_result = find_results(graph);
  std::vector<bool> dropped(graph.nodes().size(), false);
  // The fused node stands before the first reader of the masked gradient: all its operands are there by then.
  std::unordered_map<int32_t, std::vector<BackwardFusion>> before;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const ValueId masked = graph.nodes()[index].outputs[0];
    const auto fusion = find_backward(graph, node_at(index), users[index_of(masked)], is_result[index_of(masked)]);
    if (!fusion) continue;
    dropped[index] = dropped[index_of(fusion->norm)] = true;
    before[users[index_of(masked)].front().index].push_back(*fusion);
  }
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    if (const auto found = before.find(static_cast<int32_t>(index)); found != before.end())
      for (const BackwardFusion& fusion : found->second) emit_backward(rewriter, fusion);
    if (!dropped[index]) rewriter.copy(node_at(index));
  }
  return rewriter.finish();
}

}  // namespace

Graph fuse_batch_norm(const Graph& graph) { return fuse_backward(ForwardFuser(graph).run()); }

}  // namespace weft::passes
