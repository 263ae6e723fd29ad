#include "weft/passes/layout/mark_winograd.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "weft/graph/collective.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/granted_workspace.h"
#include "weft/graph/marks.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

bool is_candidate(const Graph& graph, NodeId id, const Backend& backend) {
  const Attributes& attributes = graph.node(id).attributes;
  return attributes.has(kGrantedWorkspace) && !attributes.has(kExact) &&
         backend.takes_granted_workspace(signature_of(graph, id));
}

constexpr int64_t kAlwaysBearable = 16'000'000;

/// Of all that convolutions put out, most of which lives until the gradients are computed.
int64_t image_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes())
    if (node.op->name == "conv2d") bytes += graph.type(node.outputs[0]).bytes();
  return bytes;
}

/// Of parameters and what the optimiser keeps of them.
int64_t state_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const GraphInput& input : graph.inputs())
    if (input.kind == InputKind::parameter || input.kind == InputKind::state) bytes += graph.type(input.value).bytes();
  for (const Node& node : graph.nodes())  // weights that are not trained
    if (is_constant_tensor(node)) bytes += graph.type(node.outputs[0]).bytes();
  return bytes;
}

/// `workspaces`: by the names of nodes; `otherwise` for those that are not in it.
Graph mark(const Graph& graph, const Backend& backend, const std::map<std::string, int64_t>& workspaces,
           int64_t otherwise) {
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = node_at(index);
    const Node& node = graph.node(id);
    if (!is_candidate(graph, id, backend)) {
      rewriter.copy(id);
      continue;
    }
    const auto known = workspaces.find(graph.node_name(id));
    Attributes attributes = node.attributes;
    attributes.set(kGrantedWorkspace, known == workspaces.end() ? otherwise : known->second);
    copy_with(rewriter, id, rewriter.map(node.inputs), attributes);
  }
  return rewriter.finish();
}

/// Their names.
std::set<std::string> candidates(const Graph& graph, const Backend& backend) {
  std::set<std::string> names;
  for (size_t index = 0; index < graph.nodes().size(); ++index)
    if (is_candidate(graph, node_at(index), backend)) names.insert(graph.node_name(node_at(index)));
  return names;
}

/// What ranks reduce keeps its place while it travels, by which the fullest moment moves into the convolutions' part of
/// the step; that is none of the workspaces' doing.
int64_t bytes_that_travel(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes())
    if (is_all_reduce(node))
      for (const ValueId input : node.inputs) bytes += graph.type(input).bytes();
  return bytes;
}

/// The nodes whose kernels want more than `granted` and have room for it beside what lives while they run: where all
/// may take what they want, the step's bytes stay below those of its fullest moment without them, what travels, and
/// `granted`.
std::map<std::string, int64_t> larger_workspaces(const Graph& graph, const std::set<std::string>& names,
                                                 const PlannedMemory& planned, int64_t granted) {
  const int64_t travelling = bytes_that_travel(graph);
  int64_t fullest = 0, largest = 0;
  for (const PlannedMemory::Step& step : planned.steps)
    fullest = std::max(fullest, step.live_bytes - (names.contains(step.node) ? step.workspace_bytes : 0));
  std::map<std::string, int64_t> workspaces;
  for (const PlannedMemory::Step& step : planned.steps) {
    if (!names.contains(step.node) || step.workspace_bytes <= granted) continue;
    if (step.live_bytes > fullest + travelling + granted) continue;
    workspaces[step.node] = 0;
    largest = std::max(largest, step.workspace_bytes);
  }
  // One number for all: layers of one shape then share the kernel that was made for the first.
  for (auto& [node, workspace] : workspaces) workspace = largest;
  return workspaces;
}

}  // namespace

Graph mark_winograd(const Graph& graph, const PassContext& context) {
  if (!context.grants_workspace) return graph;
  const int64_t granted = std::max(kAlwaysBearable, std::max(image_bytes(graph), state_bytes(graph)) / 8);
  std::map<std::string, int64_t> larger;
  if (context.forecast)
    larger = larger_workspaces(graph, candidates(graph, context.backend), *context.forecast, granted);
  return mark(graph, context.backend, larger, granted);
}

std::optional<Graph> mark_winograd_everywhere(const Graph& graph, const PassContext& context) {
  if (!context.grants_workspace || candidates(graph, context.backend).empty()) return std::nullopt;
  return mark(graph, context.backend, {}, kMostElements);
}

}  // namespace weft::passes
