#include "weft/passes/clean/eliminate_dead_code.h"

#include "weft/graph/collective.h"
#include "weft/graph/kept.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

Graph eliminate_dead_code(const Graph& graph) {
  std::vector<bool> needed = find_results(graph);
  std::vector<bool> alive(graph.nodes().size(), false);
  const auto mark = [&] {
    for (size_t index = graph.nodes().size(); index-- > 0;) {
      const Node& node = graph.nodes()[index];
      alive[index] = alive[index] || is_message(node);
      for (const ValueId output : node.outputs) alive[index] = alive[index] || needed[index_of(output)];
      if (!alive[index]) continue;
      for (const ValueId input : node.inputs) needed[index_of(input)] = true;
    }
  };
  mark();
  // Copies that something reads are renewed for the next step.
  for (const Node& node : graph.nodes())
    if (is_renewal(node) && needed[index_of(node.inputs[0])]) needed[index_of(node.outputs[0])] = true;
  mark();
  Rewriter rewriter(graph);
  for (size_t index = 0; index < alive.size(); ++index)
    if (alive[index]) rewriter.copy(node_at(index));
  return rewriter.finish();
}

}  // namespace weft::passes
