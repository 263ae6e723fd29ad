#include "weft/passes/ranks/weight_splits.h"

#include <algorithm>

#include "weft/passes/ranks/dimension_rules.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// And stays so while the layer is computed.
bool is_split(const DimensionForm& form) { return form.kind == DimensionForm::Kind::split && !form.is_of_rows; }

const DimensionForm& form_of(const LayerOperands& layer, size_t at) {
  return layer.of_value[index_of(layer.node.inputs[at])];
}

/// Whether the weight is a row of several along the label, each of which multiplies something of its own: of experts.
bool is_of_products(const DimensionRule& rule, size_t at, int label) {
  const std::vector<int>& own = rule.inputs[at];
  const bool sums = std::any_of(own.begin(), own.end(), [&](int one) {
    return one != DimensionRule::kWhole && !dimension_of(rule.outputs[0], one);
  });
  return sums && dimension_of(rule.outputs[0], label) &&
         std::all_of(rule.inputs.begin(), rule.inputs.end(),
                     [&](const std::vector<int>& labels) { return dimension_of(labels, label).has_value(); });
}

bool has_split_beside(const LayerOperands& layer, size_t at) {
  for (size_t other = 0; other < layer.node.inputs.size(); ++other)
    if (other != at && is_split(form_of(layer, other))) return true;
  return false;
}

}  // namespace

bool is_split_by_others(const Graph& graph, ValueId state, int dimension) {
  const auto& sharding = graph.sharding(state);
  return sharding && !sharding->split.empty() && sharding->split[static_cast<size_t>(dimension)].has_value();
}

std::optional<DimensionSplit> suggested_split(const LayerOperands& layer, size_t at, const OpenWeight& weight) {
  const DimensionRule& rule = layer.rule;
  const Shape& shape = layer.graph.shape(layer.node.inputs[at]);
  const bool has_split = has_split_beside(layer, at);
  std::optional<DimensionSplit> rows, together, outputs;
  for (int dimension = 0; dimension < shape.rank(); ++dimension) {
    const int label = rule.inputs[at][static_cast<size_t>(dimension)];
    if (label == DimensionRule::kWhole || is_split_by_others(layer.graph, layer.node.inputs[at], dimension)) continue;
    bool is_elsewhere = false;
    for (size_t other = 0; other < layer.node.inputs.size(); ++other) {
      const auto there = other == at ? std::nullopt : dimension_of(rule.inputs[other], label);
      if (!there) continue;
      is_elsewhere = true;
      const DimensionForm& have = form_of(layer, other);
      if (is_split(have) && have.split.dimension == *there && shape[dimension] % (have.split.blocks * layer.ranks) == 0)
        return DimensionSplit{dimension, have.split.blocks};
    }
    const int64_t blocks = dimension == 0 ? weight.blocks : 1, unit = dimension == 0 ? weight.unit : 1;
    if (!has_split && !together && is_of_products(rule, at, label) && shape[dimension] % layer.ranks == 0)
      together = DimensionSplit{dimension, 1};
    if (is_elsewhere || has_split || shape[dimension] % (blocks * unit * layer.ranks) != 0) continue;
    const bool is_row = is_among(rule.placed, label);
    if (is_row && blocks == 1) rows = rows.value_or(DimensionSplit{dimension, 1});
    if (!is_row && dimension_of(rule.outputs[0], label)) outputs = outputs.value_or(DimensionSplit{dimension, blocks});
  }
  return rows ? rows : together ? together : outputs;
}

}  // namespace weft::passes
