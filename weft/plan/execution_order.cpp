#include "weft/plan/execution_order.h"

#include <algorithm>
#include <set>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/tensor/tensor.h"

namespace weft {

namespace {

constexpr int64_t kSmallBytes = 4096;  // results that may as well lie around

/// For each node: is it an update or a store, or does it compute what only updates read? Such a node runs as soon as it
/// can, so that gradients die early; but not where it would make something large out of inputs alone, which then lay
/// around until the gradient comes. Beside messages only updates and stores do: another rank may wait for what a node
/// would go before. Convolutions, collectives, and what is computed again or read back as late as it
/// may, are left in their place.
std::vector<bool> find_urgent(const Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> is_read_elsewhere(graph.values().size(), false), closes(nodes.size(), false);
  for (const GraphOutput& output : graph.outputs()) is_read_elsewhere[static_cast<size_t>(output.value.index)] = true;
  for (const StateUpdate& update : graph.updates()) is_read_elsewhere[static_cast<size_t>(update.value.index)] = true;
  for (size_t index = nodes.size(); index-- > 0;) {
    const Node& node = nodes[index];
    bool elsewhere = (node.op->layout_rule == LayoutRule::kernel && node.op->flops) || is_recomputed(node) ||
                     is_load(node) || is_collective(node);
    for (const ValueId output : node.outputs) elsewhere |= is_read_elsewhere[static_cast<size_t>(output.index)];
    closes[index] = node.op->is_update || !elsewhere;
    if (closes[index]) continue;
    for (const ValueId input : node.inputs) is_read_elsewhere[static_cast<size_t>(input.index)] = true;
  }
  const bool has_messages = std::any_of(nodes.begin(), nodes.end(), is_message);
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
    urgent[index] = nodes[index].op->is_update || is_store(nodes[index]) ||
                    (!has_messages && closes[index] && (follows[index] || bytes <= kSmallBytes));
  }
  return urgent;
}

/// What the arena holds while nodes run one after the other, without workspaces.
class Occupancy {
 public:
  Occupancy(const Graph& graph, const StorageMap& storage) : touched_(graph.nodes().size()) {
    for (size_t index = 0; index < storage.bytes.size(); ++index)
      bytes_.push_back(comes_and_goes(storage, index) ? align_up(storage.bytes[index]) : 0);
    to_come_.assign(bytes_.size(), 0);
    is_there_.assign(bytes_.size(), false);
    for (size_t index = 0; index < touched_.size(); ++index) {
      const Node& node = graph.nodes()[index];
      for (const auto* values : {&node.inputs, &node.outputs})
        for (const ValueId value : *values) touch(touched_[index], storage.storage(value));
      for (const int32_t slot : touched_[index]) ++to_come_[static_cast<size_t>(slot)];
    }
    const auto keep = [&](ValueId value) { ++to_come_[static_cast<size_t>(storage.storage(value))]; };
    for (const GraphOutput& output : graph.outputs()) keep(output.value);
    for (const int32_t update : storage.copied_updates) keep(graph.updates()[static_cast<size_t>(update)].value);
  }

  /// Bytes by which the arena is fuller after the node than before it.
  int64_t growth(int32_t node) const {
    int64_t bytes = 0;
    for (const int32_t slot : touched_[static_cast<size_t>(node)]) {
      const auto s = static_cast<size_t>(slot);
      bytes += (is_there_[s] ? 0 : bytes_[s]) - (to_come_[s] == 1 ? bytes_[s] : 0);
    }
    return bytes;
  }

  void run(int32_t node) {
    int64_t freed = 0;
    for (const int32_t slot : touched_[static_cast<size_t>(node)]) {
      const auto s = static_cast<size_t>(slot);
      if (!is_there_[s]) live_ += bytes_[s];
      is_there_[s] = true;
      if (--to_come_[s] == 0) freed += bytes_[s];
    }
    peak_ = std::max(peak_, live_);
    live_ -= freed;
  }

  int64_t peak() const { return peak_; }

 private:
  static bool comes_and_goes(const StorageMap& storage, size_t index) {
    return !storage.is_given(index) && !storage.in_file[index] && !storage.is_kept[index];
  }

  static void touch(std::vector<int32_t>& slots, int32_t slot) {
    if (std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(slot);
  }

  std::vector<std::vector<int32_t>> touched_;  // per node: storages that it reads or writes
  std::vector<int64_t> bytes_;                 // per storage; 0: outside the arena, or there all the time
  std::vector<int32_t> to_come_;               // per storage: nodes that have yet to touch it
  std::vector<bool> is_there_;
  int64_t live_ = 0, peak_ = 0;
};

enum class Preference { graph_order, less_memory };

/// Of the nodes that can run: urgent ones first; then, for less memory, what leaves the arena emptier, the most first;
/// then what stands first in the graph.
std::vector<NodeId> order_nodes(const Graph& graph, const std::vector<std::vector<int32_t>>& successors,
                                const std::vector<bool>& urgent, Preference preference, Occupancy& occupancy) {
  std::vector<int32_t> waiting_for(graph.nodes().size(), 0);
  for (const auto& list : successors)
    for (const int32_t successor : list) ++waiting_for[static_cast<size_t>(successor)];
  std::set<int32_t> hurried, ready;
  const auto push = [&](int32_t index) {
    const bool costs_nothing = preference == Preference::less_memory && graph.node(NodeId{index}).op->is_view;
    (urgent[static_cast<size_t>(index)] || costs_nothing ? hurried : ready).insert(index);
  };
  for (size_t index = 0; index < waiting_for.size(); ++index)
    if (waiting_for[index] == 0) push(static_cast<int32_t>(index));
  std::vector<NodeId> order;
  while (!hurried.empty() || !ready.empty()) {
    std::set<int32_t>& from = hurried.empty() ? ready : hurried;
    auto next = from.begin();
    if (hurried.empty() && preference == Preference::less_memory) {
      int64_t best = 0;
      for (auto candidate = ready.begin(); candidate != ready.end(); ++candidate)
        if (const int64_t growth = occupancy.growth(*candidate); growth < best) {
          best = growth;
          next = candidate;
        }
    }
    const int32_t index = *next;
    from.erase(next);
    occupancy.run(index);
    order.push_back(NodeId{index});
    for (const int32_t successor : successors[static_cast<size_t>(index)])
      if (--waiting_for[static_cast<size_t>(successor)] == 0) push(successor);
  }
  check(order.size() == graph.nodes().size(), "no order of execution satisfies the in-place updates");
  return order;
}

}  // namespace

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

std::vector<NodeId> schedule(const Graph& graph, const StorageMap& storage) {
  const auto successors = find_successors(graph, storage);
  const std::vector<bool> urgent = find_urgent(graph);
  const Occupancy empty(graph, storage);
  Occupancy as_written = empty, thrifty = empty;
  std::vector<NodeId> order = order_nodes(graph, successors, urgent, Preference::graph_order, as_written);
  // In another order of its messages a rank might wait for one that waits for it.
  if (std::any_of(graph.nodes().begin(), graph.nodes().end(), is_message)) return order;
  std::vector<NodeId> other = order_nodes(graph, successors, urgent, Preference::less_memory, thrifty);
  return thrifty.peak() < as_written.peak() ? other : order;
}

}  // namespace weft
