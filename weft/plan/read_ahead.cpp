#include "weft/plan/read_ahead.h"

#include "weft/device/offload_file.h"
#include "weft/graph/offloaded.h"

namespace weft {

ValueId stored_value(const Graph& graph, const PlannedNode& step) {
  const Node& node = graph.node(step.node);
  return (is_store(node) ? node.outputs : node.inputs)[0];
}

std::vector<std::vector<size_t>> find_read_ahead(const Graph& graph, const Plan& plan) {
  std::vector<std::vector<size_t>> ahead_of(plan.steps.size());
  std::vector<size_t> loads;                             // steps
  std::vector<size_t> stored_at(graph.values().size());  // step
  const auto stored = [&](size_t step) { return static_cast<size_t>(stored_value(graph, plan.steps[step]).index); };
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    const Node& node = graph.node(plan.steps[step].node);
    if (is_load(node)) loads.push_back(step);
    if (is_store(node)) stored_at[stored(step)] = step;
  }
  const auto bytes = [&](size_t step) { return plan.placements[stored(step)].bytes; };
  size_t asked = 0;         // loads before this one have been read or asked for
  int64_t ahead_bytes = 0;  // asked for, not yet read
  for (size_t index = 0; index < loads.size(); ++index) {
    const size_t step = loads[index];
    if (index < asked)
      ahead_bytes -= bytes(step);
    else
      asked = index + 1;
    for (; asked < loads.size() && stored_at[stored(loads[asked])] < step; ++asked) {
      const int64_t next = bytes(loads[asked]);
      if (ahead_bytes > 0 && ahead_bytes + next > kOffloadWindowBytes) break;
      ahead_of[step].push_back(loads[asked]);
      ahead_bytes += next;
    }
  }
  return ahead_of;
}

}  // namespace weft
