#include "weft/passes/layout/copy_between_spaces.h"

#include "weft/graph/space_copies.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

Graph copy_between_spaces(const Graph& graph, const Backend& backend) {
  if (!backend.memory_rules().is_separate) return graph;
  const auto users = find_users(graph);
  const std::vector<bool> is_result = find_results(graph);
  Rewriter rewriter(graph);
  Graph& result = rewriter.result();
  const auto add_copy = [&](const char* op, ValueId value, const std::string& name) {
    const ValueId copy = result.add(op, {value}, {}, name);
    result.set_layout(copy, result.type(value).layout);
    return copy;
  };
  for (const GraphInput& input : graph.inputs()) {
    const bool is_given = input.kind == InputKind::batch || input.kind == InputKind::scalar;
    if (!is_given || (users[index_of(input.value)].empty() && !is_result[index_of(input.value)])) continue;
    const std::string& name = graph.value(input.value).name;
    rewriter.replace(input.value, add_copy(kCopyToDevice, rewriter.map(input.value), name + ".on_device"));
  }
  for (size_t index = 0; index < graph.nodes().size(); ++index) rewriter.copy(node_at(index));
  std::vector<ValueId> on_host(graph.values().size());
  for (const GraphOutput& output : graph.outputs()) {
    ValueId& copy = on_host[index_of(output.value)];
    if (!copy.valid())
      copy = add_copy(kCopyToHost, rewriter.map(output.value), graph.value(output.value).name + ".on_host");
    result.add_output(output.name, copy);
  }
  for (const StateUpdate& update : graph.updates()) result.add_update(update.state, rewriter.map(update.value));
  return std::move(result);
}

}  // namespace weft::passes
