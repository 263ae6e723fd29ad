#include "weft/autodiff/autodiff.h"

#include "weft/base/error.h"

namespace weft {

namespace {

/// For each value: does it depend on one of the targets?
std::vector<bool> find_dependent(const Graph& graph, const std::vector<ValueId>& targets) {
  std::vector<bool> dependent(graph.values().size(), false);
  for (const ValueId target : targets) dependent[static_cast<size_t>(target.index)] = true;
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (const ValueId input : node.inputs) any = any || dependent[static_cast<size_t>(input.index)];
    for (const ValueId output : node.outputs) {
      const size_t index = static_cast<size_t>(output.index);
      dependent[index] = dependent[index] || any;
    }
  }
  return dependent;
}

/// Notes of the nodes since the last call where they come from.
void note_origin(const Graph& graph, NodeId made_for, bool is_sum, GradientOrigins* origins) {
  if (origins == nullptr) return;
  origins->made_for.resize(graph.nodes().size() - origins->forward_nodes, made_for);
  origins->is_sum.resize(origins->made_for.size(), is_sum);
}

/// Of an op that is not weft's own, the rule may be wrong.
void require_gradients(const Graph& graph, NodeId id, const Node& node, const std::vector<ValueId>& gradients) {
  if (gradients.size() != node.inputs.size())
    fail(
        ErrorKind::usage,
        "[{}] '{}': its gradient rule gives {} gradients for {} inputs; give one each, ValueId{{}} where there is none",
        node.op->name, graph.node_name(id), gradients.size(), node.inputs.size());
  for (size_t input = 0; input < gradients.size(); ++input) {
    const Value& value = graph.value(node.inputs[input]);
    if (!gradients[input].valid() || graph.shape(gradients[input]) == value.type.shape) continue;
    fail(ErrorKind::shape,
         "[{}] '{}': its gradient rule gives '{}' {} a gradient of shape {}; where the input was broadcast, "
         "ops::sum_to_shape() takes it back",
         node.op->name, graph.node_name(id), value.name, to_string(value.type.shape),
         to_string(graph.shape(gradients[input])));
  }
}

}  // namespace

std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, const std::vector<ValueId>& targets,
                                   GradientOrigins* origins) {
  if (graph.type(loss).elements() != 1 || graph.type(loss).dtype != DType::f32)
    fail(ErrorKind::shape, "the loss '{}' must be one f32 number to be differentiated, it is {}; reduce it first",
         graph.value(loss).name, to_string(graph.type(loss)));
  const std::vector<bool> dependent = find_dependent(graph, targets);
  const size_t forward_nodes = graph.nodes().size();
  if (origins != nullptr) *origins = {.forward_nodes = forward_nodes, .made_for = {}, .is_sum = {}};
  std::vector<ValueId> gradients(graph.values().size());
  gradients[static_cast<size_t>(loss.index)] =
      graph.add("constant", {}, {{"shape", graph.shape(loss).dims()}, {"value", 1.0}}, "loss_gradient");
  note_origin(graph, {}, false, origins);

  for (size_t index = forward_nodes; index-- > 0;) {
    const NodeId id{static_cast<int32_t>(index)};
    const Node node = graph.node(id);  // a copy: rules add nodes, which moves the table
    bool wanted = false;
    for (const ValueId input : node.inputs) wanted = wanted || dependent[static_cast<size_t>(input.index)];
    std::vector<ValueId> output_gradients;
    bool reached = false;
    for (const ValueId output : node.outputs) {
      output_gradients.push_back(gradients[static_cast<size_t>(output.index)]);
      reached = reached || output_gradients.back().valid();
    }
    if (!wanted || !reached) continue;
    if (!node.op->gradient)
      fail(ErrorKind::usage,
           "[{}] '{}': this op has no gradient, but the loss depends through it on '{}'; keep it out of the loss",
           node.op->name, graph.node_name(id), graph.value(node.inputs.front()).name);
    GradContext context{graph, id, node.inputs, node.outputs, output_gradients};
    const std::vector<ValueId> input_gradients = node.op->gradient(context);
    require_gradients(graph, id, node, input_gradients);
    note_origin(graph, id, false, origins);
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      const size_t target = static_cast<size_t>(node.inputs[input].index);
      if (!input_gradients[input].valid() || !dependent[target]) continue;
      ValueId& sum = gradients[target];
      sum = sum.valid() ? graph.add("add", {sum, input_gradients[input]}, {}, "accumulate_gradient")
                        : input_gradients[input];
      const NodeId producer = graph.value(node.inputs[input]).producer;
      note_origin(graph, producer.valid() ? producer : id, true, origins);
    }
  }

  std::vector<ValueId> results;
  for (const ValueId target : targets) {
    const ValueId gradient = gradients[static_cast<size_t>(target.index)];
    results.push_back(gradient.valid()
                          ? gradient
                          : graph.add("constant", {}, {{"shape", graph.shape(target).dims()}, {"value", 0.0}},
                                      graph.value(target).name + "_gradient"));
  }
  note_origin(graph, {}, false, origins);
  return results;
}

}  // namespace weft
