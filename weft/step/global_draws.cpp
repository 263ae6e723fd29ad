#include "weft/step/global_draws.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "weft/graph/collective.h"
#include "weft/graph/rewrite.h"
#include "weft/passes/ranks/dimension_forms.h"
#include "weft/passes/support/rebuild.h"

namespace weft::step {

namespace {

using passes::DimensionSplit;
using passes::index_of;

/// Per value how it is a part of that of the whole batch; nullopt where it is none, or that is not known.
std::vector<std::optional<DimensionSplit>> find_batch_splits(const Graph& graph) {
  std::vector<std::optional<DimensionSplit>> splits(graph.values().size());
  for (const GraphInput& input : graph.inputs())
    if (input.kind == InputKind::batch && graph.shape(input.value).rank() > 0)
      splits[index_of(input.value)] = DimensionSplit{};
  for (const Node& node : graph.nodes()) {
    const auto rule = passes::rule_of(graph, node);
    if (!rule) continue;
    const auto part = std::find_if(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId input) { return splits[index_of(input)].has_value(); });
    if (part == node.inputs.end()) continue;
    const DimensionSplit split = *splits[index_of(*part)];
    if (rule->keeps_order) {
      splits[index_of(node.outputs[0])] =
          passes::reshaped(split, graph.shape(node.inputs[0]), graph.shape(node.outputs[0]), /*ranks=*/1);
      continue;
    }
    const int label =
        rule->inputs[static_cast<size_t>(part - node.inputs.begin())][static_cast<size_t>(split.dimension)];
    for (size_t output = 0; output < node.outputs.size(); ++output)
      if (const auto dimension = passes::dimension_of(rule->outputs[output], label))
        splits[index_of(node.outputs[output])] = DimensionSplit{*dimension, split.blocks};
  }
  return splits;
}

}  // namespace

Graph draw_by_global_index(const Graph& graph, int ranks) {
  const auto is_draw = [](const Node& node) { return node.op->name == "dropout"; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_draw)) return graph;
  const std::vector<std::optional<DimensionSplit>> splits = find_batch_splits(graph);
  Rewriter rewriter(graph);
  ValueId place;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = passes::node_at(index);
    const Node& node = graph.node(id);
    if (!is_draw(node)) {
      rewriter.copy(id);
      continue;
    }
    if (!place.valid())
      place = rewriter.result().add(kAxisPlace, {}, {{"ranks", int64_t{ranks}}}, std::string(kDataAxis) + ".place");
    const Shape& own = graph.shape(node.inputs[0]);
    const auto& split = splits[index_of(node.inputs[0])];
    int64_t block = own.elements();
    if (split) {
      block = own[split->dimension] / split->blocks;
      for (int inner = split->dimension + 1; inner < own.rank(); ++inner) block *= own[inner];
    }
    Attributes attributes = node.attributes;
    attributes.set("blocks", std::vector<int64_t>{block});
    attributes.set("parts", std::vector<int64_t>{ranks});
    std::vector<ValueId> operands = rewriter.map(node.inputs);
    operands.push_back(place);
    rewriter.replace(node.outputs[0], rewriter.result().add(node.op->name, operands, attributes, graph.node_name(id)));
  }
  return rewriter.finish();
}

}  // namespace weft::step
