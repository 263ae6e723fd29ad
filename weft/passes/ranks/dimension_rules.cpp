#include "weft/passes/ranks/dimension_rules.h"

#include <algorithm>

#include "weft/graph/collective.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// Whether the rule knows of all the node's tensors.
bool fits(const DimensionRule& rule, const Node& node) {
  if (rule.keeps_order) return node.inputs.size() == 1 && node.outputs.size() == 1;
  return rule.inputs.size() == node.inputs.size() && rule.outputs.size() == node.outputs.size();
}

bool may_travel(const Graph& graph, ValueId value) {
  const int bits = bits_of(graph.type(value).dtype);
  return bits == 16 || bits == 32;
}

}  // namespace

std::optional<DimensionRule> rule_of(const Graph& graph, const Node& node) {
  // What ranks along other axes exchange is elementwise to this one; nothing else of theirs is.
  if (!node.op->dimensions || (is_collective(node) && !is_all_reduce(node))) return std::nullopt;
  std::vector<TensorType> inputs, outputs;
  for (const ValueId input : node.inputs) inputs.push_back(graph.type(input));
  for (const ValueId output : node.outputs) outputs.push_back(graph.type(output));
  DimensionRule rule = node.op->dimensions({inputs, outputs, node.attributes});
  return fits(rule, node) ? std::optional(std::move(rule)) : std::nullopt;
}

std::optional<int> dimension_of(const std::vector<int>& labels, int label) {
  const auto found = std::find(labels.begin(), labels.end(), label);
  if (label == DimensionRule::kWhole || found == labels.end()) return std::nullopt;
  return static_cast<int>(found - labels.begin());
}

std::optional<DimensionSplit> reshaped(const DimensionSplit& split, const Shape& from, const Shape& to, int64_t ranks) {
  if (to.elements() == 0) return std::nullopt;
  // A part consists of runs of elements, which are the same under both shapes.
  int64_t run = from[split.dimension] / (split.blocks * ranks), runs = split.blocks;
  for (int inner = split.dimension + 1; inner < from.rank(); ++inner) run *= from[inner];
  for (int outer = 0; outer < split.dimension; ++outer) runs *= from[outer];
  int64_t before = 1, behind = to.elements();
  for (int dimension = 0; dimension < to.rank(); before *= to[dimension++]) {
    behind /= to[dimension];
    if (to[dimension] == 1 || run % behind != 0) continue;
    const int64_t kept = run / behind;
    if (to[dimension] % (kept * ranks) != 0) continue;
    const int64_t blocks = to[dimension] / (kept * ranks);
    if (before * blocks == runs) return DimensionSplit{dimension, blocks};
  }
  return std::nullopt;
}

bool is_among(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool can_split(const Graph& graph, const Node& node, const DimensionRule& rule, int label, int64_t blocks,
               int64_t ranks) {
  if (label == DimensionRule::kWhole) return false;
  const bool is_composed = is_among(rule.composed, label);
  if (blocks > 1 && (is_composed || (is_among(rule.placed, label) && node.op->name != "dropout"))) return false;
  const auto divides = [&](ValueId value, const std::vector<int>& labels) {
    const auto dimension = dimension_of(labels, label);
    return !dimension || (graph.shape(value)[*dimension] % (blocks * ranks) == 0 && may_travel(graph, value));
  };
  for (size_t at = 0; at < node.inputs.size(); ++at)
    if (!divides(node.inputs[at], rule.inputs[at])) return false;
  for (size_t at = 0; at < node.outputs.size(); ++at) {
    if (!divides(node.outputs[at], rule.outputs[at])) return false;
    if (!is_composed && !dimension_of(rule.outputs[at], label) && !is_floating(graph.type(node.outputs[at]).dtype))
      return false;
  }
  return true;
}

}  // namespace weft::passes
