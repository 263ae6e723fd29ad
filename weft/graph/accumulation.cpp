#include "weft/graph/accumulation.h"

#include "weft/base/error.h"

namespace weft {

std::vector<bool> find_completing(const Graph& graph) {
  std::vector<bool> follows(graph.nodes().size(), false);
  for (size_t index = 0; index < follows.size(); ++index)
    for (const ValueId input : graph.nodes()[index].inputs) {
      const NodeId producer = graph.value(input).producer;
      if (!producer.valid()) continue;
      const auto before = static_cast<size_t>(producer.index);
      if (follows[before] || is_accumulation(graph.nodes()[before])) follows[index] = true;
    }
  return follows;
}

int completing_input(const Graph& graph) {
  int found = -1;
  for (const Node& node : graph.nodes()) {
    if (!is_accumulation(node)) continue;
    int scalar = -1;
    for (size_t index = 0; index < graph.inputs().size(); ++index)
      if (graph.inputs()[index].value == node.inputs.back() && graph.inputs()[index].kind == InputKind::scalar)
        scalar = static_cast<int>(index);
    if (scalar < 0 || (found >= 0 && scalar != found))
      fail(ErrorKind::usage, "[{}] '{}' is complete where '{}' says so; give all sums of a graph one scalar input",
           kAccumulate, graph.value(node.outputs[0]).name, graph.value(node.inputs.back()).name);
    found = scalar;
  }
  return found;
}

}  // namespace weft
