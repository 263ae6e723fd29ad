#include "weft/graph/contents.h"

namespace weft {

std::vector<ValueId> find_contents(const Graph& graph) {
  std::vector<ValueId> contents(graph.values().size());
  for (size_t index = 0; index < contents.size(); ++index) contents[index] = ValueId{static_cast<int32_t>(index)};
  for (const Node& node : graph.nodes())
    if (node.op->is_view)
      contents[static_cast<size_t>(node.outputs[0].index)] = contents[static_cast<size_t>(node.inputs[0].index)];
  return contents;
}

}  // namespace weft
