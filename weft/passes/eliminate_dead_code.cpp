#include "weft/passes/eliminate_dead_code.h"

#include "weft/graph/kept.h"
#include "weft/passes/rebuild.h"

namespace weft::passes {

Graph eliminate_dead_code(const Graph& graph) {
  std::vector<bool> needed = find_results(graph);
  std::vector<bool> alive(graph.nodes().size(), false);
  for (size_t index = graph.nodes().size(); index-- > 0;) {
    const Node& node = graph.nodes()[index];
    alive[index] = is_renewal(node);
    for (const ValueId output : node.outputs) alive[index] = alive[index] || needed[index_of(output)];
    if (!alive[index]) continue;
    for (const ValueId input : node.inputs) needed[index_of(input)] = true;
  }
  Rewriter rewriter(graph);
  for (size_t index = 0; index < alive.size(); ++index)
    if (alive[index]) rewriter.copy(node_at(index));
  return rewriter.finish();
}

}  // namespace weft::passes
