#include "weft/passes/support/rebuild.h"

#include "weft/graph/accumulation.h"

namespace weft::passes {

std::vector<bool> find_results(const Graph& graph) {
  std::vector<bool> results(graph.values().size(), false);
  for (const GraphOutput& output : graph.outputs()) results[index_of(output.value)] = true;
  for (const StateUpdate& update : graph.updates()) results[index_of(update.value)] = true;
  return results;
}

std::vector<bool> find_late_nodes(const Graph& graph) {
  std::vector<bool> is_late(graph.nodes().size(), false);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    is_late[index] = node.op->is_update && !is_accumulation(node);
    for (const ValueId input : node.inputs)
      if (const NodeId producer = graph.value(input).producer; producer.valid() && is_late[index_of(producer)])
        is_late[index] = true;
  }
  return is_late;
}

void copy_with(Rewriter& rewriter, NodeId id, const std::vector<ValueId>& inputs, const Attributes& attributes) {
  const Graph& source = rewriter.source();
  const Node& node = source.node(id);
  const auto outputs = rewriter.result().add_node(node.op->name, inputs, attributes, source.node_name(id));
  for (size_t index = 0; index < outputs.size(); ++index) {
    rewriter.result().set_layout(outputs[index], source.type(node.outputs[index]).layout);
    rewriter.replace(node.outputs[index], outputs[index]);
  }
}

ValueId add_constant(Graph& graph, const TensorType& type, double value, const std::string& name) {
  const Attributes attributes{
      {"shape", type.shape.dims()}, {"value", value}, {"dtype", std::string(name_of(type.dtype))}};
  return graph.add("constant", {}, attributes, name);
}

}  // namespace weft::passes
