// The op whose result is a tensor that the graph itself holds: a weight that is not trained, a table, a shape. Its data
// lie where they are; no kernel runs.
#pragma once

#include "weft/graph/graph.h"

namespace weft {

inline constexpr const char* kConstantTensor = "constant_tensor";
inline constexpr const char* kConstantData = "data";  // its attribute

inline bool is_constant_tensor(const Node& node) { return node.op->name == kConstantTensor; }
inline const Constant& constant_of(const Attributes& attributes) { return attributes.constant(kConstantData); }
inline const Constant& constant_of(const Node& node) { return constant_of(node.attributes); }

}  // namespace weft
