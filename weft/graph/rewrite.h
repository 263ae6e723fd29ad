// Rebuilds a graph node by node, so that a pass says only what it changes.
#pragma once

#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// Copies `source` into a new graph. For each node of the source, in order, call copy(node) to keep it or add other
/// nodes to result() and replace() its outputs. finish() copies outputs and updates and returns the result.
class Rewriter {
 public:
  /// Copies all inputs with their layouts and shardings.
  explicit Rewriter(const Graph& source);

  const Graph& source() const { return source_; }
  Graph& result() { return result_; }

  /// The value in the result that stands for a value of the source.
  ValueId map(ValueId old_value) const { return mapped_[static_cast<size_t>(old_value.index)]; }
  std::vector<ValueId> map(const std::vector<ValueId>& old_values) const;
  bool is_mapped(ValueId old_value) const { return map(old_value).valid(); }
  void replace(ValueId old_value, ValueId new_value) { mapped_[static_cast<size_t>(old_value.index)] = new_value; }

  /// Adds the node unchanged (on mapped inputs, layouts kept) and maps its outputs.
  void copy(NodeId node);

  Graph finish();

 private:
  const Graph& source_;
  Graph result_;
  std::vector<ValueId> mapped_;
};

}  // namespace weft
