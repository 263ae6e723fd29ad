// From the graph of a step on whole tensors to that of a rank that holds parts of some weights, split along dimensions
// (tensor parallelism: Shoeybi et al. 2019, "Megatron-LM"; by the rules of GSPMD, Xu et al. 2021). The splits spread
// from the weights through the ops by the rules that stand with them (OpDef::dimensions), forward, backward and into
// the updates. Where an op wants something else of a value than the rank has, an exchange appears: an all-reduce or a
// reduce-scatter of the terms of a sum, an all-gather of parts. All ranks get the same graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/graph/graph.h"

namespace weft::passes {

/// How a tensor is split along the axis: one dimension of it, in blocks (Sharding::blocks).
struct DimensionSplit {
  int dimension = 0;
  int64_t blocks = 1;
  friend bool operator==(const DimensionSplit&, const DimensionSplit&) = default;
};

/// A weight that the pass splits as the ops suggest that read it: by its outputs where their operand is whole, by its
/// inputs where that is split already, a table by its rows, several weights in one, as of experts, into single ones.
struct OpenWeight {
  int64_t blocks = 1;  // of its first dimension: layers in one, such as queries, keys and values
  int64_t unit = 1;    // elements of that dimension that stay together: of a head
};

struct DimensionOptions {
  MeshAxis axis;
  std::map<std::string, DimensionSplit> states = {};           // that are split so
  std::map<std::string, OpenWeight> open = {};                 // that may be, by dimensions no other axis splits
  std::set<std::string> followers = {};                        // states that are split where what they meet is
  std::map<std::string, std::vector<std::string>> slots = {};  // by weight: states of its shape that are split as it is
  std::set<std::string> terms = {};                            // scalar inputs that each rank has as a term of a sum
  std::optional<NodeId> last_of_forward = {};                  // behind it nothing more is decided on weights
  // Whether ops behind a sum, such as norms and dropout, are computed in parts along its leading dimensions (sequence
  // parallelism: Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", section 4).
  bool splits_sums = false;
  // Values that are read outside of the graph, each split as this state is: a gradient as its weight.
  std::vector<std::pair<ValueId, std::string>> results = {};
};

/// Where a node of the new graph comes from.
struct NodeOrigin {
  NodeId of;               // the node of the given graph that it stands for, or for whose sake it is there
  bool is_itself = false;  // the former
};

struct DimensionPartition {
  Graph graph;
  std::map<std::string, DimensionSplit> states;  // all that are split
  std::vector<ValueId> results;                  // those of the options, in the new graph
  std::vector<NodeOrigin> origins;               // per node of the new graph
};

/// States keep their names; those that are split have the type of a part and the sharding. Error(internal) where a
/// split of `states` is none of its shape.
DimensionPartition partition_dimensions(const Graph& graph, const DimensionOptions& options);

/// The sharding of a tensor that is split so.
Sharding sharding_of(const Shape& whole, const DimensionSplit& split, const MeshAxis& axis);
/// That of one which other axes split already, by other dimensions.
Sharding split_further(Sharding sharding, const DimensionSplit& split, const MeshAxis& axis);

}  // namespace weft::passes
