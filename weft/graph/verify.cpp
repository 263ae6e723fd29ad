#include "weft/graph/verify.h"

#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/kept.h"

namespace weft {

namespace {

[[noreturn]] void broken(const std::string& stage, const std::string& where, const std::string& what) {
  fail(ErrorKind::internal, "internal error: after {}: '{}' {}; please report this with the graph", stage, where, what);
}

void verify_layout(const Value& value, const std::string& stage) {
  const Layout& layout = value.type.layout;
  const int rank = value.type.shape.rank();
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  if (!layout.order.empty() && static_cast<int>(layout.order.size()) != rank)
    broken(stage, value.name, "has a layout of another rank");
  for (const int axis : layout.order) {
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)]) broken(stage, value.name, "has a broken layout");
    seen[static_cast<size_t>(axis)] = true;
  }
  for (const auto& block : layout.blocks)
    if (block.axis < 0 || block.axis >= rank || block.size < 2) broken(stage, value.name, "has a broken layout block");
  if (!has_bounded_size(value.type)) broken(stage, value.name, "has more elements than any memory holds");
}

void verify_node(const Graph& graph, NodeId id, const std::vector<bool>& defined, const std::string& stage) {
  const Node& node = graph.node(id);
  const std::string& name = graph.node_name(id);
  std::vector<TensorType> types;
  std::vector<std::string> names;
  for (const ValueId input : node.inputs) {
    if (!input.valid() || !defined[static_cast<size_t>(input.index)])
      broken(stage, name, "uses a value that is not computed before it");
    types.push_back(graph.type(input));
    names.push_back(graph.value(input).name);
  }
  const std::vector<TensorType> inferred = node.op->infer({*node.op, name, types, names, node.attributes});
  if (inferred.size() != node.outputs.size()) broken(stage, name, "has the wrong number of outputs");
  for (size_t index = 0; index < inferred.size(); ++index) {
    const TensorType& stored = graph.type(node.outputs[index]);
    if (stored.shape != inferred[index].shape || stored.dtype != inferred[index].dtype)
      broken(stage, name, "has type " + to_string(stored) + ", its operands give " + to_string(inferred[index]));
    if (is_constant_tensor(node) && stored != inferred[index])
      broken(stage, name, "has type " + to_string(stored) + ", its data are " + to_string(inferred[index]));
  }
}

/// What outlives the step must show states alone, and as they are after it.
void verify_kept(const Graph& graph, const std::string& stage) {
  std::unordered_map<std::string, ValueId> successors;
  for (const StateUpdate& update : graph.updates()) successors.emplace(update.state, update.value);
  std::unordered_map<int32_t, ValueId> renewed;  // by the copy
  for (const Node& node : graph.nodes()) {
    if (!is_renewal(node)) continue;
    const Value& anew = graph.value(node.outputs[0]);
    if (!renewed.emplace(node.inputs[0].index, node.inputs[1]).second)
      broken(stage, anew.name, "renews what was renewed before it");
    if (anew.type != graph.type(node.inputs[0]))
      broken(stage, anew.name,
             "is " + to_string(anew.type) + ", what it renews is " + to_string(graph.type(node.inputs[0])));
  }
  std::unordered_map<int32_t, const GraphInput*> states;
  for (const GraphInput& input : graph.inputs())
    if (input.kind == InputKind::parameter || input.kind == InputKind::state) states.emplace(input.value.index, &input);
  for (const Node& node : graph.nodes()) {
    if (!is_kept(node)) continue;
    const std::string& name = graph.value(node.outputs[0]).name;
    const bool is_copy = node.inputs.size() == 1 && node.outputs.size() == 1 && !node.op->is_view;
    const auto state = is_copy ? states.find(node.inputs[0].index) : states.end();
    if (state == states.end()) broken(stage, name, "is kept from step to step but no copy of a state");
    const auto successor = successors.find(state->second->name);
    if (successor == successors.end() || successor->second == node.inputs[0]) continue;
    const auto renewal = renewed.find(node.outputs[0].index);
    if (renewal == renewed.end() || renewal->second != successor->second)
      broken(stage, name, "is kept from step to step but not renewed from the successor of its state");
  }
}

}  // namespace

void verify(const Graph& graph, const std::string& stage) {
  std::unordered_set<std::string> names;
  for (const Value& value : graph.values()) {
    if (!names.insert(value.name).second) broken(stage, value.name, "names two values");
    verify_layout(value, stage);
  }
  std::vector<bool> defined(graph.values().size(), false);
  for (const GraphInput& input : graph.inputs()) {
    defined[static_cast<size_t>(input.value.index)] = true;
    const TensorType& type = graph.type(input.value);
    if (input.kind == InputKind::scalar && !is_scalar_input(type))
      broken(stage, input.name, "is a scalar input, but " + to_string(type));
  }
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id{static_cast<int32_t>(index)};
    verify_node(graph, id, defined, stage);
    for (const ValueId output : graph.node(id).outputs) defined[static_cast<size_t>(output.index)] = true;
  }
  for (const GraphOutput& output : graph.outputs())
    if (!defined[static_cast<size_t>(output.value.index)])
      broken(stage, output.name, "is an output that nothing computes");
  std::unordered_set<std::string> updated;
  for (const StateUpdate& update : graph.updates()) {
    if (!updated.insert(update.state).second) broken(stage, update.state, "is updated twice");
    const GraphInput* input = graph.find_input(update.state);
    if (input == nullptr) broken(stage, update.state, "is updated but no input");
    const TensorType &from = graph.type(input->value), &to = graph.type(update.value);
    if (from != to) broken(stage, update.state, "is " + to_string(from) + " but its successor is " + to_string(to));
  }
  verify_kept(graph, stage);
}

}  // namespace weft
