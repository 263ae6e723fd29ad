#include "weft/passes/ranks/overlap_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "weft/graph/collective.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// All that the ranks that divide the batch exchange, but all-reduces, which go together where that is cheaper. What
/// others exchange is wanted at once, and so are the tokens of experts.
const CollectiveOps* split_of(const Node& node) {
  const CollectiveOps* const ops = find_collective(node);
  if (ops == nullptr || !ops->has_halves() || node.op->name != ops->whole || is_all_reduce(node)) return nullptr;
  return axis_of_exchange(node) == kDataAxis ? ops : nullptr;
}

/// Of whole tensors that are scattered, or put together from parts: each takes the memory of all of it meanwhile.
constexpr size_t kMostScatters = 4, kMostLateGathers = 2;

class GatherOverlap {
 public:
  GatherOverlap(const Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        is_late_(find_late_nodes(graph)),
        users_(find_users(graph)),
        rewriter_(graph),
        pending_(graph.nodes().size()) {
    const size_t count = graph.nodes().size();
    find_values_of_states();
    bool follows = false, follows_late = false;  // messages do, from here on
    is_split_.assign(count, false);
    follows_.assign(count, false);
    is_fetched_.assign(count, false);
    follows_late_.assign(count, false);
    for (size_t index = 0; index < count; ++index) {
      const Node& node = graph.nodes()[index];
      for (const ValueId input : node.inputs)
        if (const NodeId producer = graph.value(input).producer; producer.valid()) {
          const size_t before = index_of(producer);
          follows_[index] = follows_[index] || follows_[before] || (is_split_[before] && !is_late_[before]);
          follows_late_[index] =
              follows_late_[index] || follows_late_[before] || (is_split_[before] && is_late_[before]);
        }
      // Messages keep their order, or two ranks might wait for each other.
      if (is_message(node)) {
        follows = follows_[index] = follows_[index] || follows;
        follows_late = follows_late_[index] = follows_late_[index] || follows_late;
      }
      is_fetched_[index] = gathers_state(node) && (!is_late_[index] || !graph_.value(node.inputs[0]).producer.valid());
      is_split_[index] = split_of(node) != nullptr && !follows_[index] && !follows_late_[index] && !is_fetched_[index];
      if (is_fetched_[index]) fetched_.push_back(index);
    }
    find_carriers();
  }

  Graph run() {
    for (size_t index = 0; index < graph_.nodes().size(); ++index)
      if (is_split_[index] && !is_late_[index] && !graph_.value(graph_.nodes()[index].inputs[0]).producer.valid())
        start(index);
    double now = 0;
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (is_split_[index] || is_late_[index] || follows_[index] || is_carrier_[index]) continue;
      while (!scatters_.empty() && scatters_.front().arrives <= now) wait_for_scatter();
      if (is_fetched_[index]) {
        fetch(index);
        continue;
      }
      put(index, now);
    }
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (is_late_[index]) continue;
      if (is_there(index)) continue;
      if (is_split_[index])
        wait(index);
      else if (follows_[index])
        rewriter_.copy(node_at(index));
    }
    put_late();
    return rewriter_.finish();
  }

 private:
  /// A tensor of which ranks keep parts, and which is wanted whole for a while: a state, or what nodes make of states
  /// alone, such as the sum of two biases.
  bool gathers_state(const Node& node) const {
    return node.op->name == kAllGather && axis_of_exchange(node) == kDataAxis &&
           is_of_states_[index_of(node.inputs[0])];
  }

  /// Per value: whether it is a state that ranks keep in parts, or made of such states.
  void find_values_of_states() {
    is_of_states_.assign(graph_.values().size(), false);
    for (const GraphInput& input : graph_.inputs())
      if (graph_.sharding(input.value)) is_of_states_[index_of(input.value)] = true;
    for (const Node& node : graph_.nodes()) {
      const bool is_of_states = find_collective(node) == nullptr && !node.inputs.empty() &&
                                std::all_of(node.inputs.begin(), node.inputs.end(),
                                            [&](ValueId input) { return is_of_states_[index_of(input)]; });
      for (const ValueId output : node.outputs) is_of_states_[index_of(output)] = is_of_states;
    }
  }

  /// What only brings a tensor into the shape in which it is scattered is done as soon as the tensor is there.
  void find_carriers() {
    is_carrier_.assign(graph_.nodes().size(), false);
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      const Node& node = graph_.nodes()[index];
      const std::string& op = node.op->name;
      if (is_late_[index] || follows_[index] || (op != "reorder" && op != "reshape" && op != "pad")) continue;
      if (!graph_.value(node.inputs[0]).producer.valid()) continue;
      const std::vector<NodeId>& users = users_[index_of(node.outputs[0])];
      is_carrier_[index] = !users.empty() && std::all_of(users.begin(), users.end(), [&](NodeId user) {
        const bool scatters = is_split_[index_of(user)] && graph_.node(user).op->name == kReduceScatter;
        return scatters || is_carrier_[index_of(user)];
      });
    }
  }

  /// The node, and what can set out behind it.
  void put(size_t index, double& now) {
    rewriter_.copy(node_at(index));
    now += context_.seconds(signature_of(graph_, node_at(index)));
    for (const ValueId output : graph_.nodes()[index].outputs)
      for (const NodeId user : users_[index_of(output)])
        if (is_carrier_[index_of(user)]) put(index_of(user), now);
    for_each_split_user(index, [&](size_t user) { start_at(user, now); });
  }

  template <typename Body>
  void for_each_split_user(size_t index, Body&& body) {
    for (const ValueId output : graph_.nodes()[index].outputs)
      for (const NodeId user : users_[index_of(output)])
        if (is_split_[index_of(user)]) body(index_of(user));
  }

  /// Each begins while the one before it is used.
  void fetch(size_t index) {
    const auto at = static_cast<size_t>(std::find(fetched_.begin(), fetched_.end(), index) - fetched_.begin());
    for (const size_t next : {at, at + 1})
      if (next < fetched_.size() && !pending_[fetched_[next]].valid() && is_operand_there(fetched_[next]))
        start(fetched_[next]);
    wait(index);
  }

  void start_at(size_t index, double now) {
    if (graph_.nodes()[index].op->name != kReduceScatter) return start(index);
    while (scatters_.size() >= kMostScatters) wait_for_scatter();
    start(index);
    const double before = scatters_.empty() ? 0 : scatters_.back().arrives;
    const int64_t bytes = graph_.type(graph_.nodes()[index].inputs[0]).bytes();
    scatters_.push_back({index, std::max(before, now) + predicted_gather_seconds(context_.ranks, bytes)});
  }
  void wait_for_scatter() {
    wait(scatters_.front().node);
    scatters_.pop_front();
  }
  bool is_operand_there(size_t index) const { return rewriter_.is_mapped(graph_.nodes()[index].inputs[0]); }
  bool is_there(size_t index) const { return rewriter_.is_mapped(graph_.nodes()[index].outputs[0]); }

  /// Updates and what depends on them: what they gather sets out as soon as it is there, and is put in its place while
  /// the next ones are under way.
  void put_late() {
    std::deque<size_t> under_way;
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (!is_late_[index] || follows_late_[index]) continue;
      if (!is_split_[index]) {
        rewriter_.copy(node_at(index));
        continue;
      }
      while (under_way.size() >= kMostLateGathers) end_late(under_way);
      start(index);
      under_way.push_back(index);
    }
    while (!under_way.empty()) end_late(under_way);
    copy_ready_from(0);
  }

  /// Waits for the first, and adds what only waited for it.
  void end_late(std::deque<size_t>& under_way) {
    const size_t first = under_way.front();
    wait(first);
    under_way.pop_front();
    copy_ready_from(first + 1);
  }
  void copy_ready_from(size_t first) {
    bool is_message_waiting = false;
    for (size_t index = first; index < graph_.nodes().size(); ++index) {
      if (!follows_late_[index] || is_there(index)) continue;
      const Node& node = graph_.nodes()[index];
      const bool is_ready = std::all_of(node.inputs.begin(), node.inputs.end(),
                                        [&](ValueId input) { return rewriter_.is_mapped(input); });
      if (is_ready && !(is_message(node) && is_message_waiting))
        rewriter_.copy(node_at(index));
      else
        is_message_waiting = is_message_waiting || is_message(node);
    }
  }

  void start(size_t index) {
    const Node& node = graph_.nodes()[index];
    const ValueId operand = rewriter_.map(node.inputs[0]);
    pending_[index] = rewriter_.result().add(split_of(node)->start, {operand}, attributes_of(index),
                                             graph_.node_name(node_at(index)) + ".start");
    if (node.op->layout_rule == LayoutRule::elementwise)
      rewriter_.result().set_layout(pending_[index], graph_.type(node.inputs[0]).layout);
  }

  void wait(size_t index) {
    const ValueId source = graph_.nodes()[index].outputs[0];
    const ValueId there = rewriter_.result().add(split_of(graph_.nodes()[index])->wait, {pending_[index]},
                                                 attributes_of(index), graph_.value(source).name);
    rewriter_.result().set_layout(there, graph_.type(source).layout);
    rewriter_.replace(source, there);
  }

  Attributes attributes_of(size_t index) const {
    int64_t number = 0;
    for (size_t before = 0; before < index; ++before) number += is_split_[before] || is_fetched_[before] ? 1 : 0;
    Attributes attributes{{"number", number}, {"tensors", graph_.node_name(node_at(index))}};
    for (const char* name : {"ranks", "reduction", "root"})
      if (const Attributes& own = graph_.nodes()[index].attributes; own.has(name))
        attributes.set(name, own.values().at(name));
    return attributes;
  }

  struct Scatter {
    size_t node;
    double arrives;  // predicted, in seconds of the nodes before the updates
  };

  const Graph& graph_;
  const PassContext& context_;
  const std::vector<bool> is_late_;
  const std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_of_states_;  // per value
  std::vector<bool> is_split_;      // per node: an exchange that becomes two; one of what another gives stays as it is
  std::vector<bool> follows_;       // per node: depends on an exchange before the updates,
  std::vector<bool> is_carrier_;    // per node: only leads to what is scattered
  std::vector<bool> follows_late_;  // or on one behind them
  std::vector<bool> is_fetched_;    // per node: gathers a state where it is wanted
  std::vector<size_t> fetched_;     // those nodes
  std::deque<Scatter> scatters_;    // under way
  Rewriter rewriter_;
  std::vector<ValueId> pending_;  // per node
};

}  // namespace

double predicted_gather_seconds(const Ranks& ranks, int64_t bytes) {
  // (n-1)/n of the bytes leave a rank, of an all-reduce of as many twice that.
  return ranks.latency_seconds + static_cast<double>(bytes) / 2 / ranks.bytes_per_second;
}

Graph overlap_collectives(const Graph& graph, const PassContext& context) {
  const auto splits = [](const Node& node) { return split_of(node) != nullptr; };
  if (context.ranks.count <= 1 || std::none_of(graph.nodes().begin(), graph.nodes().end(), splits)) return graph;
  return GatherOverlap(graph, context).run();
}

}  // namespace weft::passes
