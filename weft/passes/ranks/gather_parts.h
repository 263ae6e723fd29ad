// Nodes that put a tensor together from the parts that the ranks along an axis of the mesh have of it, and that give
// each of them its part of a sum.
#pragma once

#include <string>

#include "weft/graph/graph.h"
#include "weft/graph/sharding.h"

namespace weft::passes {

/// From the part of one dimension that each rank along the axis has, in so many blocks (Sharding::blocks), to `whole`,
/// the shape with all of that dimension. `as`: what the new nodes are named after.
ValueId gather_dimension(Graph& graph, ValueId part, int dimension, int64_t blocks, const MeshAxis& axis,
                         const Shape& whole, const std::string& as);

/// From the term that each rank along the axis has of a sum to its part of that, along one dimension in so many blocks.
ValueId scatter_dimension(Graph& graph, ValueId term, int dimension, int64_t blocks, const MeshAxis& axis,
                          const std::string& as);

/// From all parts of a tensor that is split by its elements, [ranks r], to its own shape.
ValueId restore_elements(Graph& graph, ValueId parts, const Shape& whole, const std::string& as);

}  // namespace weft::passes
