#include "weft/plan/schedule.h"

#include <queue>

#include "weft/base/error.h"

namespace weft {

namespace {

/// For each node those that must wait for it: readers of its results, and nodes that overwrite what it reads. What
/// shares memory was chosen so that the graph's order keeps to this: readers of the old content come before, of the new
/// after.
std::vector<std::vector<int32_t>> find_successors(const Graph& graph, const StorageMap& storage) {
  const auto& nodes = graph.nodes();
  std::vector<std::vector<int32_t>> successors(nodes.size());
  std::vector<std::vector<int32_t>> readers(storage.root.size());  // so far
  for (size_t index = 0; index < nodes.size(); ++index) {
    for (const ValueId input : nodes[index].inputs)
      if (graph.value(input).producer.valid())
        successors[static_cast<size_t>(graph.value(input).producer.index)].push_back(static_cast<int32_t>(index));
    if (!nodes[index].op->is_view)
      for (const ValueId output : nodes[index].outputs) {
        const int32_t written = storage.storage(output);
        if (storage.root[static_cast<size_t>(written)] == output) continue;
        for (const int32_t reader : readers[static_cast<size_t>(written)])
          successors[static_cast<size_t>(reader)].push_back(static_cast<int32_t>(index));
      }
    for (const ValueId input : nodes[index].inputs)
      readers[static_cast<size_t>(storage.storage(input))].push_back(static_cast<int32_t>(index));
  }
  return successors;
}

constexpr int64_t kSmallBytes = 4096;  // results that may as well lie around

/// For each node: is it an update, or does it compute what only updates read? Such a node runs as soon as it can, so
/// that gradients die early; but not where it would make something large out of inputs alone, which then lay around
/// until the gradient comes. Convolutions are left in their place among the others.
std::vector<bool> find_urgent(const Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> is_read_elsewhere(graph.values().size(), false), closes(nodes.size(), false);
  for (const GraphOutput& output : graph.outputs()) is_read_elsewhere[static_cast<size_t>(output.value.index)] = true;
  for (const StateUpdate& update : graph.updates()) is_read_elsewhere[static_cast<size_t>(update.value.index)] = true;
  for (size_t index = nodes.size(); index-- > 0;) {
    const Node& node = nodes[index];
    bool elsewhere = node.op->layout_rule == LayoutRule::kernel && node.op->flops;
    for (const ValueId output : node.outputs) elsewhere |= is_read_elsewhere[static_cast<size_t>(output.index)];
    closes[index] = node.op->is_update || !elsewhere;
    if (closes[index]) continue;
    for (const ValueId input : node.inputs) is_read_elsewhere[static_cast<size_t>(input.index)] = true;
  }
  std::vector<bool> follows(nodes.size(), false), urgent(nodes.size(), false);  // follows what is no closing node
  for (size_t index = 0; index < nodes.size(); ++index) {
    int64_t bytes = 0;
    for (const ValueId output : nodes[index].outputs) bytes += graph.type(output).bytes();
    for (const ValueId input : nodes[index].inputs) {
      const NodeId producer = graph.value(input).producer;
      if (!producer.valid()) continue;
      const auto before = static_cast<size_t>(producer.index);
      if (!closes[before] || follows[before]) follows[index] = true;
    }
    urgent[index] = nodes[index].op->is_update || (closes[index] && (follows[index] || bytes <= kSmallBytes));
  }
  return urgent;
}

}  // namespace

std::vector<NodeId> schedule(const Graph& graph, const StorageMap& storage) {
  const auto successors = find_successors(graph, storage);
  std::vector<int32_t> waiting_for(graph.nodes().size(), 0);
  for (const auto& list : successors)
    for (const int32_t successor : list) ++waiting_for[static_cast<size_t>(successor)];
  const std::vector<bool> urgent = find_urgent(graph);
  using Entry = std::pair<bool, int32_t>;  // (not urgent, position)
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](int32_t index) { ready.emplace(!urgent[static_cast<size_t>(index)], index); };
  for (size_t index = 0; index < waiting_for.size(); ++index)
    if (waiting_for[index] == 0) push(static_cast<int32_t>(index));
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const int32_t index = ready.top().second;
    ready.pop();
    order.push_back(NodeId{index});
    for (const int32_t successor : successors[static_cast<size_t>(index)])
      if (--waiting_for[static_cast<size_t>(successor)] == 0) push(successor);
  }
  check(order.size() == graph.nodes().size(), "no order of execution satisfies the in-place updates");
  return order;
}

}  // namespace weft
