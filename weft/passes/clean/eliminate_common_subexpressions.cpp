#include "weft/passes/clean/eliminate_common_subexpressions.h"

#include <fmt/format.h>

#include <unordered_map>

#include "weft/graph/collective.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// Equal for two nodes exactly where they compute the same.
std::string expression_of(const Graph& graph, const Node& node, const std::vector<ValueId>& operands) {
  std::string text = node.op->name;
  for (const ValueId operand : operands) text += fmt::format(",{}", operand.index);
  for (const auto& [name, value] : node.attributes.values()) text += fmt::format(";{}={}", name, to_string(value));
  for (const ValueId output : node.outputs) text += "@" + to_string(graph.type(output).layout);
  return text;
}

}  // namespace

Graph eliminate_common_subexpressions(const Graph& graph) {
  std::vector<bool> is_successor(graph.values().size(), false);  // of a state: two states must not share one buffer
  for (const StateUpdate& update : graph.updates()) is_successor[index_of(update.value)] = true;

  Rewriter rewriter(graph);
  std::unordered_map<std::string, NodeId> known;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    bool mergeable = !node.op->is_update && !is_message(node);  // each of which is one more
    for (const ValueId output : node.outputs) mergeable = mergeable && !is_successor[index_of(output)];
    if (mergeable) {
      const auto [first, is_new] = known.emplace(expression_of(graph, node, rewriter.map(node.inputs)), node_at(index));
      if (!is_new) {
        const Node& earlier = graph.node(first->second);
        for (size_t output = 0; output < node.outputs.size(); ++output)
          rewriter.replace(node.outputs[output], rewriter.map(earlier.outputs[output]));
        continue;
      }
    }
    rewriter.copy(node_at(index));
  }
  return rewriter.finish();
}

}  // namespace weft::passes
