// How a weight that may be split is split: as the layer that reads it suggests.
#pragma once

#include <optional>
#include <vector>

#include "weft/passes/ranks/dimension_forms.h"

namespace weft::passes {

/// A node, and what the ranks have of its operands.
struct LayerOperands {
  const Graph& graph;
  const Node& node;
  const DimensionRule& rule;
  const std::vector<DimensionForm>& of_value;
  int64_t ranks = 1;
};

/// Whether ranks along another axis have split that dimension.
bool is_split_by_others(const Graph& graph, ValueId state, int dimension);

/// Of the operand `at`, which is a state: by its outputs where the other operands are whole, by its inputs where they
/// are split already, a table by its rows, several weights in one into single ones. nullopt: it stays whole.
std::optional<DimensionSplit> suggested_split(const LayerOperands& layer, size_t at, const OpenWeight& weight);

}  // namespace weft::passes
