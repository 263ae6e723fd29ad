#include "weft/predict/memory.h"

#include "weft/plan/memory_use.h"

namespace weft::predict {

MemoryPrediction predict_memory(const StepGraphs& graphs, int64_t state_bytes, int64_t beside) {
  const CompiledStep* fullest = graphs.batch;
  for (const CompiledStep* step : {graphs.update, graphs.averaging})
    if (step != nullptr && step->plan.arena_bytes > fullest->plan.arena_bytes) fullest = step;
  const Plan& plan = fullest->plan;
  MemoryPrediction memory{.states = state_bytes, .file = graphs.batch->plan.file_bytes};
  if (!plan.steps.empty()) {
    const auto peak = static_cast<size_t>(plan.peak_step);
    const MemoryBytes uses = memory_by_use(fullest->graph, plan)[peak];
    const auto of = [&](MemoryUse use) { return uses[static_cast<size_t>(use)]; };
    memory.activations = of(MemoryUse::activation) + of(MemoryUse::recomputed);
    memory.gradients = of(MemoryUse::gradient);
    memory.at = fullest->graph.node_name(plan.steps[peak].node);
  }
  memory.buffers = plan.arena_bytes - memory.activations - memory.gradients + graphs.batch->plan.batch_bytes +
                   graphs.batch->plan.constant_bytes + beside;
  return memory;
}

}  // namespace weft::predict
