// A node as text, as far as the choice of its kernel may depend on it.
#pragma once

#include <string>

#include "weft/graph/graph.h"

namespace weft {

/// Op, attributes and the types of operands and results with their layouts: the node's name and who shares its memory
/// do not count. "relu;f32[4];f32[4]"
std::string signature_key(const NodeSignature& node);

}  // namespace weft
