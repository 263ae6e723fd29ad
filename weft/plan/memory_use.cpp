#include "weft/plan/memory_use.h"

#include <algorithm>

#include "weft/graph/collective.h"
#include "weft/graph/recomputed.h"

namespace weft {

namespace {

/// What is told of the backward part: the norm of the gradients, and a sum over one of them.
bool is_of_gradients(const GraphOutput& output) {
  return output.name == "gradient_norm" || output.name == "own_gradient";
}

/// For each value: does a graph output of the forward part, or what a stage of a pipeline sends forward, depend on it?
std::vector<bool> find_forward(const Graph& graph) {
  std::vector<bool> forward(graph.values().size(), false);
  for (const GraphOutput& output : graph.outputs())
    if (!is_of_gradients(output)) forward[static_cast<size_t>(output.value.index)] = true;
  for (size_t index = graph.nodes().size(); index-- > 0;) {
    const Node& node = graph.nodes()[index];
    const bool is_sent = node.op->name == kSendStart && node.attributes.boolean("forward");
    const bool any = is_sent || std::any_of(node.outputs.begin(), node.outputs.end(),
                                            [&](ValueId value) { return forward[static_cast<size_t>(value.index)]; });
    // All results of a forward node are forward: masks and statistics are saved there for the backward part.
    for (const auto* values : {&node.inputs, &node.outputs})
      for (const ValueId value : *values)
        if (any) forward[static_cast<size_t>(value.index)] = true;
  }
  return forward;
}

}  // namespace

std::string_view name_of(MemoryUse use) {
  constexpr std::string_view names[] = {"states and batch", "activations", "recomputed", "gradients", "workspace"};
  return names[static_cast<size_t>(use)];
}

std::vector<MemoryUse> uses_of_blocks(const Graph& graph, const Plan& plan) {
  const std::vector<bool> forward = find_forward(graph);
  std::vector<MemoryUse> uses;
  for (const ArenaBlock& block : plan.blocks) {
    const Node* producer = graph.producer(block.value);
    if (producer != nullptr && is_recomputed(*producer))
      uses.push_back(MemoryUse::recomputed);
    else
      uses.push_back(forward[static_cast<size_t>(block.value.index)] ? MemoryUse::activation : MemoryUse::gradient);
  }
  return uses;
}

std::vector<MemoryBytes> memory_by_use(const Graph& graph, const Plan& plan) {
  std::vector<MemoryBytes> timeline(plan.steps.size(), MemoryBytes{});
  const std::vector<MemoryUse> uses = uses_of_blocks(graph, plan);
  for (size_t index = 0; index < plan.blocks.size(); ++index)
    for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step)
      if (lives_at(plan.blocks[index], step))
        timeline[static_cast<size_t>(step)][static_cast<size_t>(uses[index])] += plan.blocks[index].bytes;
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    timeline[step][static_cast<size_t>(MemoryUse::state)] = plan.state_bytes + plan.batch_bytes + plan.constant_bytes;
    timeline[step][static_cast<size_t>(MemoryUse::workspace)] = align_up(plan.steps[step].workspace_bytes);
  }
  return timeline;
}

}  // namespace weft
