// Marks results that may be written over an operand which dies at that node, as attribute in_place = [output, input,
// ...], so that memory planning gives both one buffer. Only pairs that the op allows, of equal types. Updates and what
// depends on them are put last.
#pragma once

#include "weft/graph/graph.h"

namespace weft::passes {

Graph mark_in_place(const Graph& graph);

}  // namespace weft::passes
