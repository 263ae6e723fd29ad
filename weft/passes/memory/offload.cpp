#include "weft/passes/memory/offload.h"

#include "weft/passes/memory/mark_in_place.h"
#include "weft/passes/memory/recompute.h"

namespace weft::passes {

Graph offload(const Graph& graph, const PassContext& context) {
  const int64_t limit = context.arena_limit_bytes;
  if (limit <= 0 || !context.plan_memory || context.offload_bytes_per_second <= 0) return graph;
  const PlannedMemory planned = planned_in_place(graph, context);
  if (planned.arena_bytes <= limit) return graph;
  return fit_to_limit(graph, context, planned, context.offload_bytes_per_second).graph;
}

}  // namespace weft::passes
