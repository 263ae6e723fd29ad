#include "weft/passes/fuse/keep_slopes.h"

#include <optional>
#include <vector>

#include "weft/graph/contents.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

struct Pair {
  NodeId function, gradient;
};

class Finder {
 public:
  explicit Finder(const Graph& graph)
      : graph_(graph),
        contents_(find_contents(graph)),
        users_(graph.values().size()),
        is_kept_(graph.values().size(), false) {
    const auto users = find_users(graph);
    const std::vector<bool> is_result = find_results(graph);
    for (size_t index = 0; index < graph.values().size(); ++index) {
      const size_t content = index_of(contents_[index]);
      is_kept_[content] = is_kept_[content] || is_result[index] || !graph.value(contents_[index]).producer.valid();
      for (const NodeId user : users[index])
        if (!graph.node(user).op->is_view) users_[content].push_back(user);
    }
  }

  /// The gelu whose gradient `id` is, where nothing but the gradient reads its operand later than itself.
  std::optional<Pair> find(NodeId id) const {
    const Node& gradient = graph_.node(id);
    if (gradient.op->name != "gelu_backward") return std::nullopt;
    const size_t content = index_of(contents_[index_of(gradient.inputs[1])]);
    if (is_kept_[content]) return std::nullopt;
    std::optional<Pair> pair;
    for (const NodeId user : users_[content]) {
      const Node& reader = graph_.node(user);
      if (reader.op->name == "gelu" && user < id && reader.inputs[0] == gradient.inputs[1] &&
          reader.attributes == gradient.attributes)
        pair = Pair{user, id};
    }
    if (!pair) return std::nullopt;
    for (const NodeId user : users_[content])
      if (user > pair->function && user != id) return std::nullopt;
    return pair;
  }

 private:
  const Graph& graph_;
  const std::vector<ValueId> contents_;
  std::vector<std::vector<NodeId>> users_;  // per content: of it and of all its views, but no views themselves
  std::vector<bool> is_kept_;               // per content: alive after the step
};

}  // namespace

Graph keep_slopes(const Graph& graph) {
  const Finder finder(graph);
  std::vector<std::optional<Pair>> pair_of(graph.nodes().size());
  for (size_t index = 0; index < graph.nodes().size(); ++index)
    if (const auto pair = finder.find(node_at(index)))
      for (const NodeId id : {pair->function, pair->gradient}) pair_of[index_of(id)] = pair;
  Rewriter rewriter(graph);
  std::vector<ValueId> slope_of(graph.nodes().size());  // by gradient
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = node_at(index);
    const Node& node = graph.node(id);
    const auto& pair = pair_of[index];
    if (pair && id == pair->gradient) {
      const ValueId gradient =
          rewriter.result().add("multiply", {rewriter.map(node.inputs[0]), slope_of[index]}, {}, graph.node_name(id));
      rewriter.result().set_layout(gradient, graph.type(node.outputs[0]).layout);
      rewriter.replace(node.outputs[0], gradient);
      continue;
    }
    if (pair) {
      const ValueId x = rewriter.map(node.inputs[0]);
      const ValueId slope = rewriter.result().add("gelu_slope", {x}, node.attributes, graph.node_name(id) + ".slope");
      rewriter.result().set_layout(slope, graph.type(node.inputs[0]).layout);
      slope_of[index_of(pair->gradient)] = slope;
    }
    rewriter.copy(id);
  }
  return rewriter.finish();
}

}  // namespace weft::passes
