// Decides everything about a rewritten graph that the executor needs: order, kernels, memory.
#pragma once

#include "weft/device/backend.h"
#include "weft/plan/plan.h"

namespace weft {

Plan make_plan(const Graph& graph, const Backend& backend, int threads);

}  // namespace weft
