// Marks results that may be written over an operand which dies at that node, as attribute in_place = [output, input,
// ...], so that memory planning gives both one buffer. Only pairs that the op allows, of equal types. Updates and what
// depends on them are put last.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

Graph mark_in_place(const Graph& graph);

/// What planning makes of the graph once it has been through this pass; wants PassContext::plan_memory.
PlannedMemory planned_in_place(const Graph& graph, const PassContext& context);

}  // namespace weft::passes
