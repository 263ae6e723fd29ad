#include "weft/passes/ranks/overlap_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "weft/graph/collective.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// All that ranks exchange but all-reduces, which go together where that is cheaper.
const CollectiveOps* split_of(const Node& node) {
  const CollectiveOps* const ops = find_collective(node);
  return ops != nullptr && node.op->name == ops->whole && !is_all_reduce(node) ? ops : nullptr;
}

class GatherOverlap {
 public:
  explicit GatherOverlap(const Graph& graph)
      : graph_(graph), is_late_(find_late_nodes(graph)), rewriter_(graph), pending_(graph.nodes().size()) {
    const size_t count = graph.nodes().size();
    is_split_.assign(count, false);
    follows_.assign(count, false);
    for (size_t index = 0; index < count; ++index) {
      const Node& node = graph.nodes()[index];
      for (const ValueId input : node.inputs)
        if (const NodeId producer = graph.value(input).producer; producer.valid())
          follows_[index] = follows_[index] || follows_[index_of(producer)] || is_split_[index_of(producer)];
      is_split_[index] = split_of(node) != nullptr && !is_late_[index] && !follows_[index];
    }
  }

  Graph run() {
    for (size_t index = 0; index < graph_.nodes().size(); ++index)
      if (is_split_[index] && !graph_.value(graph_.nodes()[index].inputs[0]).producer.valid()) start(index);
    const auto users = find_users(graph_);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (is_split_[index] || is_late_[index] || follows_[index]) continue;
      rewriter_.copy(node_at(index));
      for (const ValueId output : graph_.nodes()[index].outputs)
        for (const NodeId user : users[index_of(output)])
          if (is_split_[index_of(user)]) start(index_of(user));
    }
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (is_split_[index])
        wait(index);
      else if (follows_[index] && !is_late_[index])
        rewriter_.copy(node_at(index));
    }
    for (size_t index = 0; index < graph_.nodes().size(); ++index)
      if (is_late_[index]) rewriter_.copy(node_at(index));
    return rewriter_.finish();
  }

 private:
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
    for (size_t before = 0; before < index; ++before) number += is_split_[before] ? 1 : 0;
    Attributes attributes{{"number", number}, {"tensors", graph_.node_name(node_at(index))}};
    for (const char* name : {"ranks", "reduction", "root"})
      if (const Attributes& own = graph_.nodes()[index].attributes; own.has(name))
        attributes.set(name, own.values().at(name));
    return attributes;
  }

  const Graph& graph_;
  const std::vector<bool> is_late_;
  std::vector<bool> is_split_;  // per node: an exchange that becomes two; one of what another gives stays as it is
  std::vector<bool> follows_;   // per node: depends on an exchange
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
  return GatherOverlap(graph).run();
}

}  // namespace weft::passes
