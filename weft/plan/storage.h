// Which values share one piece of memory: views with their source, in-place results with the operand they replace,
// state updates with the state. What lies between a store and a load has a piece of its own, of a file.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

struct StorageMap {
  std::vector<int32_t> of_value;        // storage index per value
  std::vector<ValueId> root;            // per storage: the value that came first (a graph input where there is one)
  std::vector<int64_t> bytes;           // per storage: the largest of its values
  std::vector<int32_t> input;           // per storage: index into graph.inputs(), or -1
  std::vector<int32_t> constant;        // per storage: index into graph.nodes() of the constant tensor, or -1
  std::vector<bool> in_file;            // per storage: takes no memory
  std::vector<bool> is_kept;            // per storage: lasts from one step to the next (graph/kept.h)
  std::vector<int32_t> copied_updates;  // indices into graph.updates() whose value lies elsewhere than the state

  /// True for what the caller or the graph holds: no part of the arena.
  bool is_given(size_t storage_index) const { return input[storage_index] >= 0 || constant[storage_index] >= 0; }
  int32_t storage(ValueId value) const { return of_value[static_cast<size_t>(value.index)]; }
};

/// Reads OpDef::is_view, the marks kInPlace that passes/mark_in_place set, and OpDef::is_update with in_place:
/// an update shares the state's memory where all that reads the old state stands before it. Error(usage) where an
/// output or the successor of another state lies in a state that the step replaces: passes/copy_states gives them a
/// copy. A renewal shares the memory of the copy that it renews; Error(usage) where something reads that after it.
StorageMap map_storage(const Graph& graph);

}  // namespace weft
