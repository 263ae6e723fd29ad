#include "weft/passes/layout/copy_between_spaces.h"

#include <algorithm>

#include "weft/graph/space_copies.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// Rebuilds the graph with its copies. What the rewriter maps a value to lies in the device's memory, if anything of it
/// does.
class SpaceCopies {
 public:
  explicit SpaceCopies(const Graph& graph)
      : graph_(graph),
        users_(find_users(graph)),
        is_result_(find_results(graph)),
        rewriter_(graph),
        on_host_(graph.values().size()) {}

  Graph run() {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::batch && input.kind != InputKind::scalar) continue;
      on_host_[index_of(input.value)] = rewriter_.map(input.value);
      if (!users_[index_of(input.value)].empty() || is_result_[index_of(input.value)]) bring_to_device(input.value);
    }
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (works_on_host(graph_.nodes()[index]))
        add_host_node(node_at(index));
      else
        rewriter_.copy(node_at(index));
    }
    Graph& result = rewriter_.result();
    for (const GraphOutput& output : graph_.outputs()) result.add_output(output.name, host_value(output.value));
    for (const StateUpdate& update : graph_.updates()) result.add_update(update.state, rewriter_.map(update.value));
    return std::move(result);
  }

 private:
  ValueId add_copy(const char* op, ValueId value, const std::string& name) {
    Graph& result = rewriter_.result();
    const ValueId copy = result.add(op, {value}, {}, name);
    result.set_layout(copy, result.type(value).layout);
    return copy;
  }

  /// From where it lies in the host's memory.
  void bring_to_device(ValueId value) {
    rewriter_.replace(value,
                      add_copy(kCopyToDevice, on_host_[index_of(value)], graph_.value(value).name + ".on_device"));
  }

  /// Copied at the first call.
  ValueId host_value(ValueId value) {
    ValueId& there = on_host_[index_of(value)];
    if (!there.valid()) there = add_copy(kCopyToHost, rewriter_.map(value), graph_.value(value).name + ".on_host");
    return there;
  }

  bool is_read_on_device(ValueId value) const {
    const auto& users = users_[index_of(value)];
    return std::any_of(users.begin(), users.end(), [&](NodeId user) { return !works_on_host(graph_.node(user)); }) ||
           std::any_of(graph_.updates().begin(), graph_.updates().end(),
                       [&](const StateUpdate& update) { return update.value == value; });
  }

  void add_host_node(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(host_value(input));
    Graph& result = rewriter_.result();
    const auto outputs = result.add_node(node.op->name, inputs, node.attributes, graph_.node_name(id));
    for (size_t index = 0; index < outputs.size(); ++index) {
      const ValueId source = node.outputs[index];
      result.set_layout(outputs[index], graph_.type(source).layout);
      on_host_[index_of(source)] = outputs[index];
      if (is_read_on_device(source)) bring_to_device(source);
    }
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
  Rewriter rewriter_;
  std::vector<ValueId> on_host_;  // per value of the source: where it lies there too
};

}  // namespace

Graph copy_between_spaces(const Graph& graph, const Backend& backend) {
  if (!backend.memory_rules().is_separate) return graph;
  return SpaceCopies(graph).run();
}

}  // namespace weft::passes
