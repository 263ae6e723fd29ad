// What the rules of ops (OpDef::dimensions) say of a node whose tensors are split.
#pragma once

#include <optional>
#include <vector>

#include "weft/passes/ranks/partition_dimensions.h"

namespace weft::passes {

/// The rule of a node's op, and the types that it speaks of. nullopt where the op has none.
std::optional<DimensionRule> rule_of(const Graph& graph, const Node& node);

/// The place of the label among those of a tensor; nullopt where it has none.
std::optional<int> dimension_of(const std::vector<int>& labels, int label);

/// The split of a tensor that was split so under another shape; nullopt where it is none.
std::optional<DimensionSplit> reshaped(const DimensionSplit& split, const Shape& from, const Shape& to, int64_t ranks);

bool is_among(const std::vector<int>& labels, int label);

/// Whether the node can be computed in parts along the label, in so many blocks.
bool can_split(const Graph& graph, const Node& node, const DimensionRule& rule, int label, int64_t blocks,
               int64_t ranks);

}  // namespace weft::passes
