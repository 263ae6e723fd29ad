// From the graph of a step on whole tensors to that of a rank that holds parts of some states. The split spreads from
// the states: what is computed from parts element by element is computed in parts (OpDef::of_split), norms become sums
// over the ranks, and a sum over the ranks of which only parts are wanted becomes a reduce-scatter. Where an op wants
// the whole of what is split, the parts are gathered; where a part of something whole is wanted, it is taken. All
// ranks get the same graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "weft/graph/graph.h"

namespace weft::passes {

struct PartitionOptions {
  MeshAxis axis;                            // the ranks that share
  std::map<std::string, Sharding> states;   // those of which each rank shall hold a part; flat, of the graph's shape
  std::set<std::string> of_each_rank = {};  // inputs that differ between the ranks, beside batches
  /// Whether a sum of which parts are wanted is scattered. If not it is summed whole, in the order in which all-reduces
  /// sum over several hosts.
  bool scatters = true;
  /// What is gathered for nodes up to this one is gathered again for those behind it, so that it need not be kept.
  std::optional<NodeId> last_of_forward = {};
};

/// States keep their names; those that are split have the type of a part and the sharding. Error(internal) where a
/// state's sharding is not that of its shape.
Graph partition(const Graph& graph, const PartitionOptions& options);

}  // namespace weft::passes
