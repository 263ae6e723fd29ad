// Small helpers that several passes share beside graph/rewrite.h.
#pragma once

#include <vector>

#include "weft/graph/rewrite.h"

namespace weft::passes {

inline size_t index_of(ValueId id) { return static_cast<size_t>(id.index); }
inline size_t index_of(NodeId id) { return static_cast<size_t>(id.index); }
inline NodeId node_at(size_t index) { return NodeId{static_cast<int32_t>(index)}; }

/// For each value: true where the caller reads it after the step, as a graph output or as the successor of a state.
std::vector<bool> find_results(const Graph& graph);

/// Whether this output of the op takes the place of a state. An update may have others, such as what attention makes of
/// the keys that it keeps.
bool replaces_state(const OpDef& op, int output);

/// For each node: is it an update, or does it depend on the successor of a state? Sums over several runs are not:
/// nobody else reads the state that they replace, and what they add is to be gone early. Nor are updates with other
/// results.
std::vector<bool> find_late_nodes(const Graph& graph);

/// Adds a node of the same op and name as `node` of the source, with the same layouts and shardings, but with other
/// operands (values of the result) and attributes; maps its outputs.
void copy_with(Rewriter& rewriter, NodeId node, const std::vector<ValueId>& inputs, const Attributes& attributes);

/// A scalar, or a fill of one number: adds a `constant` node to the graph.
ValueId add_constant(Graph& graph, const TensorType& type, double value, const std::string& name);

}  // namespace weft::passes
