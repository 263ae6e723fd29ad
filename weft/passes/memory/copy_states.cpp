#include "weft/passes/memory/copy_states.h"

#include <unordered_map>

#include "weft/graph/contents.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// Where values lie if every update is done in place.
class States {
 public:
  explicit States(const Graph& graph)
      : graph_(graph), input_(graph.values().size(), -1), content_(find_contents(graph)) {
    for (size_t index = 0; index < graph.inputs().size(); ++index)
      input_[index_of(graph.inputs()[index].value)] = static_cast<int32_t>(index);
    for (const Node& node : graph.nodes()) {
      if (!node.op->is_view && !node.op->is_update) continue;
      const std::vector<std::pair<int, int>> view = {{0, 0}};
      for (const auto& [output, input] : node.op->is_view ? view : node.op->in_place)
        if (static_cast<size_t>(output) < node.outputs.size())  // of ops with any number of states
          input_[index_of(node.outputs[static_cast<size_t>(output)])] =
              input_[index_of(node.inputs[static_cast<size_t>(input)])];
    }
    for (const StateUpdate& update : graph.updates())
      successor_[graph.find_input(update.state)] = content_[index_of(update.value)];
  }

  bool wants_copy(const GraphOutput& output) const {
    const GraphInput* input = input_of(output.value);
    const auto successor = successor_.find(input);
    return input != nullptr && successor != successor_.end() && successor->second != content_[index_of(output.value)];
  }
  bool wants_copy(const StateUpdate& update) const {
    const GraphInput* input = input_of(update.value);
    return input != nullptr && input->name != update.state;
  }

 private:
  const GraphInput* input_of(ValueId value) const {
    const int32_t input = input_[index_of(value)];
    return input < 0 ? nullptr : &graph_.inputs()[static_cast<size_t>(input)];
  }

  const Graph& graph_;
  std::vector<int32_t> input_;  // per value: the graph input in whose memory it lies, or -1
  std::vector<ValueId> content_;
  std::unordered_map<const GraphInput*, ValueId> successor_;
};

}  // namespace

Graph copy_states(const Graph& graph) {
  const States states(graph);
  std::vector<bool> wanted(graph.values().size(), false);
  for (const GraphOutput& output : graph.outputs())
    if (states.wants_copy(output)) wanted[index_of(output.value)] = true;
  for (const StateUpdate& update : graph.updates())
    if (states.wants_copy(update)) wanted[index_of(update.value)] = true;

  Rewriter rewriter(graph);
  Graph& result = rewriter.result();
  std::vector<ValueId> copies(graph.values().size());
  // Before anything else is read: an update that comes later may then overwrite the original.
  const auto copy_where_wanted = [&](ValueId value) {
    if (!wanted[index_of(value)]) return;
    copies[index_of(value)] = result.add("reorder", {rewriter.map(value)}, {}, graph.value(value).name + ".copy");
    result.set_layout(copies[index_of(value)], graph.type(value).layout);
  };
  for (const GraphInput& input : graph.inputs()) copy_where_wanted(input.value);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    rewriter.copy(node_at(index));
    for (const ValueId output : graph.nodes()[index].outputs) copy_where_wanted(output);
  }
  const auto shown = [&](const auto& reader) {
    return states.wants_copy(reader) ? copies[index_of(reader.value)] : rewriter.map(reader.value);
  };
  for (const GraphOutput& output : graph.outputs()) result.add_output(output.name, shown(output));
  for (const StateUpdate& update : graph.updates()) result.add_update(update.state, shown(update));
  return std::move(result);
}

}  // namespace weft::passes
