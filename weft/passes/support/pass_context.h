// What a pass may ask beside its graph: the device, the precision, the limits, the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/device/backend.h"
#include "weft/device/cost_model.h"
#include "weft/graph/graph.h"
#include "weft/passes/support/precision_policy.h"

namespace weft::passes {

/// What planning would make of a graph.
struct PlannedMemory {
  struct Step {
    std::string node;
    int64_t workspace_bytes = 0;
    int64_t live_bytes = 0;  // of the arena while it runs, its workspace included
  };
  std::vector<Step> steps;  // in order of execution
  int64_t arena_bytes = 0;
};

/// Who takes part in the step, and what an all-reduce of some bytes is predicted to cost.
struct Ranks {
  int count = 1;
  double latency_seconds = 5e-5;
  double bytes_per_second = 5e9;
  int64_t batches = 0;  // whose gradients each rank adds before an all-reduce; 0: rows of layers cannot travel with
                        // each of them (step::batches_per_exchange)
  int64_t bucket_bytes = 0;  // of what is reduced together, where it is not to be decided by cost: 1 for none
  bool may_defer = false;    // whoever runs the plan finishes it before the states are read (Executor::finish)
};

/// What a pass may ask; a pass changes nothing but the graph it returns.
struct PassContext {
  const Backend& backend;
  PrecisionPolicy precision = {};
  int threads = 1;
  int64_t arena_limit_bytes = 0;  // 0: none
  /// Plans a graph as it is, and runs no pass. Wanted where there is a limit, to keep copies, and for a forecast.
  std::function<PlannedMemory(const Graph&)> plan_memory = {};
  /// For a pass that wants one (Pass::to_forecast): the plan at the end of the table, without a limit.
  std::optional<PlannedMemory> forecast = {};
  bool grants_workspace = true;         // to kernels that are faster with it, and may round otherwise
  bool gathers_rows = true;             // of layers, in place of reducing gradients, where that is predicted to pay
  double offload_bytes_per_second = 0;  // of a file for what finds no place; 0: there is none
  Ranks ranks = {};
  std::shared_ptr<const CostModel> costs = rated_costs();

  double seconds(const NodeSignature& node) const { return costs->seconds(node, threads); }
};

}  // namespace weft::passes
