#include "weft/plan/counted_work.h"

#include <algorithm>

#include "weft/graph/accumulation.h"
#include "weft/graph/kept.h"
#include "weft/plan/storage.h"

namespace weft {

void CountedWork::add(const CountedWork& other, int64_t times) {
  nodes += times * other.nodes;
  flops += times * other.flops;
  bytes += times * other.bytes;
  reorders += times * other.reorders;
  reorder_bytes += times * other.reorder_bytes;
  casts += times * other.casts;
  cast_bytes += times * other.cast_bytes;
  state_copies += times * other.state_copies;
  state_copy_bytes += times * other.state_copy_bytes;
  arena_bytes = std::max(arena_bytes, other.arena_bytes);
  workspace_bytes = std::max(workspace_bytes, other.workspace_bytes);
  state_bytes = std::max(state_bytes, other.state_bytes);
  for (const auto& [kernel, count] : other.kernels) kernels[kernel] += times * count;
  for (const auto& [kernel, count] : other.kernels_when_bound) kernels_when_bound[kernel] += count;
}

namespace {

void count_node(CountedWork& work, const OpDef& op, const PlannedNode& step) {
  const int64_t bytes = step.bytes_read + step.bytes_written;
  ++work.nodes;
  work.flops += step.flops;
  work.bytes += bytes;
  work.workspace_bytes = std::max(work.workspace_bytes, step.workspace_bytes);
  ++work.kernels[{op.name, step.kernel}];
  if (op.name == "reorder") {
    ++work.reorders;
    work.reorder_bytes += bytes;
  } else if (op.name == "cast" || op.name == kRenew) {
    ++work.casts;
    work.cast_bytes += bytes;
  }
}

CountedWork count(const Graph& graph, const Plan& plan, bool completes) {
  const std::vector<bool> is_completing = find_completing(graph);
  const auto runs = [&](NodeId node) {
    return completes || !node.valid() || !is_completing[static_cast<size_t>(node.index)];
  };
  CountedWork work;
  work.arena_bytes = plan.arena_bytes;
  work.state_bytes = plan.state_bytes;
  for (const PlannedNode& step : plan.steps) {
    const Node& node = graph.node(step.node);
    if (!runs(step.node)) continue;
    if (is_kept(node)) {
      if (completes) ++work.kernels_when_bound[{node.op->name, step.kernel}];
    } else if (!node.op->is_view) {
      count_node(work, *node.op, step);
    }
  }
  for (const int32_t update : map_storage(graph).copied_updates) {
    const ValueId value = graph.updates()[static_cast<size_t>(update)].value;
    if (!runs(graph.value(value).producer)) continue;
    ++work.state_copies;
    work.state_copy_bytes += 2 * graph.type(value).bytes();
  }
  return work;
}

}  // namespace

CountedWork count_work(const Graph& graph, const Plan& plan) { return count(graph, plan, /*completes=*/true); }

CountedWork count_work_of_part(const Graph& graph, const Plan& plan) { return count(graph, plan, /*completes=*/false); }

CountedWork count_work_when_bound(const Graph& graph, const Plan& plan) {
  CountedWork work;
  for (const PlannedNode& step : plan.steps)
    if (const Node& node = graph.node(step.node); is_kept(node)) count_node(work, *node.op, step);
  return work;
}

}  // namespace weft
