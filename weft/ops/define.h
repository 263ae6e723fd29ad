// Small helpers in which the op definitions of this folder are written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/ops/ops.h"

namespace weft::ops {

inline AttributeSpec required_attribute(std::string name, AttributeValue example, std::string help) {
  return {std::move(name), std::move(example), true, std::move(help)};
}
inline AttributeSpec attribute(std::string name, AttributeValue value, std::string help) {
  return {std::move(name), std::move(value), false, std::move(help)};
}

inline std::vector<int64_t> to_list(const Pair& pair) { return {pair[0], pair[1]}; }

inline TensorType f32(Shape shape) { return {DType::f32, std::move(shape), {}}; }
inline TensorType i32(Shape shape) { return {DType::i32, std::move(shape), {}}; }
inline TensorType i64(Shape shape) { return {DType::i64, std::move(shape), {}}; }

/// A copy: adding nodes moves the graph's own.
inline Attributes attributes_of(const GradContext& context) { return context.graph.node(context.node).attributes; }

/// "stem.weight_gradient" for the node 'stem' and the operand "weight".
inline std::string gradient_name(const GradContext& context, const std::string& operand) {
  return context.graph.node_name(context.node) + "." + operand + "_gradient";
}

}  // namespace weft::ops
