#include "weft/passes/precision/keep_copies.h"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/graph/kept.h"
#include "weft/passes/memory/mark_in_place.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

constexpr int64_t kAllowedPart = 100;  // the arena may grow by this part of it

/// The casts that can be kept, and what they will be cast from again.
class CopiesToKeep {
 public:
  explicit CopiesToKeep(const Graph& graph)
      : graph_(graph),
        input_(graph.values().size(), nullptr),
        is_result_(find_results(graph)),
        is_late_(find_late_nodes(graph)),
        users_(find_users(graph)) {
    for (const GraphInput& input : graph.inputs())
      if (input.kind == InputKind::parameter || input.kind == InputKind::state) input_[index_of(input.value)] = &input;
    for (const StateUpdate& update : graph.updates()) successors_.emplace(update.state, update.value);
  }

  bool contains(size_t index) const {
    const Node& node = graph_.nodes()[index];
    if (node.op->name != "cast" || input_[index_of(node.inputs[0])] == nullptr) return false;
    const ValueId copy = node.outputs[0];
    if (graph_.type(copy).bytes() >= graph_.type(node.inputs[0]).bytes() || is_result_[index_of(copy)]) return false;
    // The renewal must find all readers before it.
    for (const NodeId user : users_[index_of(copy)])
      if (is_late_[index_of(user)] || graph_.node(user).op->is_view) return false;
    return true;
  }

  /// Whether the graph replaces any parameter.
  bool trains() const {
    return std::any_of(graph_.inputs().begin(), graph_.inputs().end(), [&](const GraphInput& input) {
      return input.kind == InputKind::parameter && successors_.contains(input.name);
    });
  }

  /// Of the state that the cast reads; invalid where the graph leaves it as it is.
  ValueId successor(size_t index) const {
    const ValueId state = graph_.nodes()[index].inputs[0];
    const auto found = successors_.find(input_[index_of(state)]->name);
    return found == successors_.end() || found->second == state ? ValueId{} : found->second;
  }

 private:
  const Graph& graph_;
  std::vector<const GraphInput*> input_;  // per value: the state that it is, or null
  std::vector<bool> is_result_, is_late_;
  std::vector<std::vector<NodeId>> users_;
  std::unordered_map<std::string, ValueId> successors_;  // by state
};

/// The graph with these of its casts kept.
Graph keep(const Graph& graph, const CopiesToKeep& copies, std::span<const size_t> chosen) {
  std::vector<bool> is_chosen(graph.nodes().size(), false);
  for (const size_t index : chosen) is_chosen[index] = true;
  Rewriter rewriter(graph);
  Graph& result = rewriter.result();
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    Attributes attributes = node.attributes;
    if (is_chosen[index]) attributes.set(kKept, true);
    copy_with(rewriter, node_at(index), rewriter.map(node.inputs), attributes);
  }
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    if (!is_chosen[index] || !copies.successor(index).valid()) continue;
    const ValueId copy = graph.nodes()[index].outputs[0];
    const ValueId anew = result.add(kRenew, {rewriter.map(copy), rewriter.map(copies.successor(index))}, {},
                                    graph.value(copy).name + ".renewed");
    result.set_layout(anew, graph.type(copy).layout);
  }
  return rewriter.finish();
}

}  // namespace

Graph keep_copies(const Graph& graph, const PassContext& context) {
  if (graph.updates().empty() || context.arena_limit_bytes > 0 || !context.plan_memory) return graph;
  if (std::any_of(graph.nodes().begin(), graph.nodes().end(), is_kept)) return graph;
  const CopiesToKeep copies(graph);
  std::vector<size_t> casts;  // the smallest first
  for (size_t index = 0; index < graph.nodes().size(); ++index)
    if (copies.contains(index)) casts.push_back(index);
  if (casts.empty()) return graph;
  std::stable_sort(casts.begin(), casts.end(), [&](size_t a, size_t b) {
    return graph.type(graph.nodes()[a].outputs[0]).bytes() < graph.type(graph.nodes()[b].outputs[0]).bytes();
  });
  // It runs for one token after the other: reading all weights again to cast them would take longer than all else.
  if (!copies.trains()) return keep(graph, copies, casts);
  const int64_t before = planned_in_place(graph, context).arena_bytes;
  const auto fits = [&](size_t count) {
    const Graph kept = keep(graph, copies, std::span(casts).first(count));
    return planned_in_place(kept, context).arena_bytes <= before + before / kAllowedPart;
  };
  size_t fitting = 0, tried = casts.size();  // so many fit, and so many are tried next
  for (size_t too_many = casts.size() + 1; fitting + 1 < too_many; tried = (fitting + too_many) / 2)
    (fits(tried) ? fitting : too_many) = tried;
  return keep(graph, copies, std::span(casts).first(fitting));
}

}  // namespace weft::passes
