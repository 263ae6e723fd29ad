#include "weft/passes/support/rebuild.h"

#include <algorithm>

#include "weft/graph/accumulation.h"
#include "weft/graph/collective.h"

namespace weft::passes {

std::vector<bool> find_results(const Graph& graph) {
  std::vector<bool> results(graph.values().size(), false);
  for (const GraphOutput& output : graph.outputs()) results[index_of(output.value)] = true;
  for (const StateUpdate& update : graph.updates()) results[index_of(update.value)] = true;
  return results;
}

bool replaces_state(const OpDef& op, int output) {
  return op.is_update &&
         std::any_of(op.in_place.begin(), op.in_place.end(), [&](const auto& pair) { return pair.first == output; });
}

std::vector<bool> find_late_nodes(const Graph& graph) {
  std::vector<bool> is_late(graph.nodes().size(), false), is_late_value(graph.values().size(), false);
  bool has_late_message = false;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    is_late[index] = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId input) { return static_cast<bool>(is_late_value[index_of(input)]); });
    std::vector<bool> replaces;
    for (size_t output = 0; output < node.outputs.size(); ++output)
      replaces.push_back(!is_accumulation(node) && replaces_state(*node.op, static_cast<int>(output)));
    is_late[index] = is_late[index] || std::find(replaces.begin(), replaces.end(), false) == replaces.end();
    // Messages keep their order, or two ranks might wait for each other.
    if (is_message(node)) has_late_message = is_late[index] = is_late[index] || has_late_message;
    for (size_t output = 0; output < node.outputs.size(); ++output)
      is_late_value[index_of(node.outputs[output])] = is_late[index] || replaces[output];
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
    rewriter.result().copy_sharding(outputs[index], source, node.outputs[index]);
  }
}

ValueId add_constant(Graph& graph, const TensorType& type, double value, const std::string& name) {
  const Attributes attributes{
      {"shape", type.shape.dims()}, {"value", value}, {"dtype", std::string(name_of(type.dtype))}};
  return graph.add("constant", {}, attributes, name);
}

}  // namespace weft::passes
