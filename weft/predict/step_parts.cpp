#include "weft/predict/step_parts.h"

#include <algorithm>
#include <iterator>

#include "weft/graph/collective.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/passes/support/rebuild.h"

namespace weft::predict {

namespace {

/// Outputs of the forward part; others, such as the norm of the gradients, come of the backward part.
constexpr std::string_view kForwardOutputs[] = {"loss", "correct", "own_loss"};

std::vector<bool> find_forward(const Graph& graph) {
  std::vector<bool> is_needed(graph.values().size(), false), is_forward(graph.nodes().size(), false);
  for (const GraphOutput& output : graph.outputs())
    if (std::find(std::begin(kForwardOutputs), std::end(kForwardOutputs), output.name) != std::end(kForwardOutputs))
      is_needed[static_cast<size_t>(output.value.index)] = true;
  for (size_t index = graph.nodes().size(); index-- > 0;) {
    const Node& node = graph.nodes()[index];
    is_forward[index] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId value) {
      return static_cast<bool>(is_needed[static_cast<size_t>(value.index)]);
    });
    if (!is_forward[index]) continue;
    for (const ValueId input : node.inputs) is_needed[static_cast<size_t>(input.index)] = true;
  }
  return is_forward;
}

}  // namespace

std::string_view name_of(Part part) {
  constexpr std::string_view names[] = {"forward", "backward", "update", "exchange", "transfer"};
  return names[static_cast<size_t>(part)];
}

std::vector<Part> parts_of(const Graph& graph, bool is_update) {
  const std::vector<bool> is_forward = find_forward(graph), is_late = passes::find_late_nodes(graph);
  std::vector<Part> parts;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    if (is_collective(node))
      parts.push_back(Part::exchange);
    else if (is_store(node) || is_load(node))
      parts.push_back(Part::transfer);
    else if (is_update || is_late[index])
      parts.push_back(Part::update);
    else
      parts.push_back(is_forward[index] && !is_recomputed(node) ? Part::forward : Part::backward);
  }
  return parts;
}

}  // namespace weft::predict
