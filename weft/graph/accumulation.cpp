#include "weft/graph/accumulation.h"

#include "weft/base/error.h"
#include "weft/graph/space_copies.h"

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
    ValueId says = node.inputs.back();
    if (const Node* copy = graph.producer(says); copy != nullptr && is_copy_to_device(*copy)) says = copy->inputs[0];
    int scalar = -1;
    for (size_t index = 0; index < graph.inputs().size(); ++index)
      if (graph.inputs()[index].value == says && graph.inputs()[index].kind == InputKind::scalar)
        scalar = static_cast<int>(index);
    if (scalar < 0 || (found >= 0 && scalar != found))
      fail(ErrorKind::usage, "[{}] '{}' is complete where '{}' says so; give all sums of a graph one scalar input",
           kAccumulate, graph.value(node.outputs[0]).name, graph.value(node.inputs.back()).name);
    found = scalar;
  }
  return found;
}

}  // namespace weft
