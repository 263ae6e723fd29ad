#include "weft/passes/memory/mark_in_place.h"

#include <algorithm>
#include <limits>

#include "weft/graph/constant_node.h"
#include "weft/graph/kept.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// The buffers of a graph before anything is marked: a view lies in the buffer of what it views, the result of an
/// update in that of its state.
struct Buffers {
  std::vector<size_t> of_value;    // index of the value that owns the buffer
  std::vector<int32_t> last_user;  // per owner: the last node that reads the buffer; kForever: outlives the step

  static constexpr int32_t kForever = std::numeric_limits<int32_t>::max();

  explicit Buffers(const Graph& graph) : of_value(graph.values().size()), last_user(graph.values().size(), -1) {
    for (size_t index = 0; index < of_value.size(); ++index) of_value[index] = index;
    for (size_t index = 0; index < graph.nodes().size(); ++index) {
      const Node& node = graph.nodes()[index];
      if (node.op->is_view) of_value[index_of(node.outputs[0])] = of_value[index_of(node.inputs[0])];
      if (node.op->is_update)
        for (const auto& [output, input] : node.op->in_place)
          if (static_cast<size_t>(output) < node.outputs.size())  // of ops with any number of states
            of_value[index_of(node.outputs[static_cast<size_t>(output)])] =
                of_value[index_of(node.inputs[static_cast<size_t>(input)])];
      for (const ValueId input : node.inputs) reads(input, static_cast<int32_t>(index));
      if (is_kept(node) || is_constant_tensor(node)) reads(node.outputs[0], kForever);
    }
    for (const GraphInput& input : graph.inputs()) reads(input.value, kForever);
    const std::vector<bool> is_result = find_results(graph);
    for (size_t index = 0; index < is_result.size(); ++index)
      if (is_result[index]) last_user[of_value[index]] = kForever;
  }

  void reads(ValueId value, int32_t node) {
    int32_t& last = last_user[of_value[index_of(value)]];
    last = std::max(last, node);
  }
};

/// The pairs (output, input) of a node that can share memory, flattened.
std::vector<int64_t> choose_pairs(const Graph& graph, size_t index, const Buffers& buffers) {
  const Node& node = graph.nodes()[index];
  std::vector<int64_t> pairs;
  std::vector<bool> is_taken(node.outputs.size(), false);
  std::vector<size_t> overwritten;  // owners
  for (const auto& [output, input] : node.op->in_place) {
    const auto to = static_cast<size_t>(output), from = static_cast<size_t>(input);
    if (to >= node.outputs.size() || from >= node.inputs.size() || is_taken[to]) continue;
    const ValueId value = node.inputs[from];
    const size_t owner = buffers.of_value[index_of(value)];
    if (buffers.last_user[owner] != static_cast<int32_t>(index)) continue;
    if (graph.type(value) != graph.type(node.outputs[to])) continue;
    if (std::find(overwritten.begin(), overwritten.end(), owner) != overwritten.end()) continue;
    // Another operand in the same buffer would be overwritten too, unless it is the same value, element by element.
    bool is_shared = false;
    for (size_t other = 0; other < node.inputs.size(); ++other) {
      const bool same_elements = node.inputs[other] == value && node.op->layout_rule == LayoutRule::elementwise;
      is_shared =
          is_shared || (other != from && buffers.of_value[index_of(node.inputs[other])] == owner && !same_elements);
    }
    if (is_shared) continue;
    is_taken[to] = true;
    overwritten.push_back(owner);
    pairs.insert(pairs.end(), {output, input});
  }
  return pairs;
}

/// Updates and what depends on them come after all other nodes: so an update finds the readers of its state before it,
/// and may overwrite it.
Graph with_updates_last(const Graph& graph) {
  const std::vector<bool> is_late = find_late_nodes(graph);
  Rewriter rewriter(graph);
  for (const bool late : {false, true})
    for (size_t index = 0; index < graph.nodes().size(); ++index)
      if (is_late[index] == late) rewriter.copy(node_at(index));
  return rewriter.finish();
}

}  // namespace

Graph mark_in_place(const Graph& source) {
  const Graph graph = with_updates_last(source);
  const Buffers buffers(graph);
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    Attributes attributes = node.attributes;
    attributes.erase(kInPlace);
    if (!node.op->is_update) {  // updates replace their state by definition
      const std::vector<int64_t> pairs = choose_pairs(graph, index, buffers);
      if (!pairs.empty()) attributes.set(kInPlace, pairs);
    }
    copy_with(rewriter, node_at(index), rewriter.map(node.inputs), attributes);
  }
  return rewriter.finish();
}

PlannedMemory planned_in_place(const Graph& graph, const PassContext& context) {
  return context.plan_memory(mark_in_place(graph));
}

}  // namespace weft::passes
