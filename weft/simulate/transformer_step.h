// A training step of a transformer on a cluster under a strategy: one rank of each stage stands for all that do the
// same, so that a step of thousands of ranks is as many tasks as one of a few.
#pragma once

#include "weft/simulate/collective_cost.h"
#include "weft/simulate/task_graph.h"
#include "weft/simulate/transformer.h"

namespace weft::simulate {

struct TransformerStep {
  double seconds = 0;
  double busy_seconds = 0;      // of the busiest stage: products, sweeps and messages of the tensor axis, update
  double tensor_seconds = 0;    // of those: messages of the tensor and context axes
  double exchange_seconds = 0;  // gradients, and weights where they are shared; hidden or not
  double update_seconds = 0;    // of the optimiser
  double flops = 0;             // of all ranks, without what is computed again
  double exchanged_bytes = 0;   // that a host sends for them in a step
  double pipeline_bytes = 0;    // that the host whose stages send the most sends to stages on others in a step
  TransformerMemory memory;
  TaskGraph tasks;
  std::vector<Span> spans;

  double flops_per_second_per_rank(const Strategy& strategy) const { return flops / seconds / strategy.ranks(); }
};

/// `factor`: of all that a rank computes, as of stragglers. Error(usage) where the strategy does not fit the shape or
/// the cluster has no such device.
TransformerStep simulate_transformer(const TransformerShape& shape, const Strategy& strategy,
                                     const machines::ClusterFile& cluster,
                                     const machines::Calibration& calibration = {}, double factor = 1);

}  // namespace weft::simulate
