#include "weft/passes/filter_by_tiles.h"

#include <algorithm>

#include "weft/passes/rebuild.h"

namespace weft::passes {

namespace {

bool is_candidate(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  const bool is_weights = op == "conv2d_backward_weights";
  if (!is_weights && op != "conv2d" && op != "conv2d_backward_data") return false;
  using Pair = std::vector<int64_t>;
  const Shape& weights = graph.shape(is_weights ? node.outputs[0] : node.inputs[1]);
  const DType dtype = graph.type(node.inputs[0]).dtype;
  return (dtype == DType::f32 || dtype == DType::bf16) && weights[2] == 3 && weights[3] == 3 &&
         node.attributes.integers("stride") == Pair{1, 1} && node.attributes.integers("dilation") == Pair{1, 1} &&
         node.attributes.integer("groups") == 1;
}

constexpr int64_t kAlwaysBearable = 16'000'000;

/// Of all that convolutions put out, most of which lives until the gradients are computed.
int64_t image_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes())
    if (node.op->name == "conv2d") bytes += graph.type(node.outputs[0]).bytes();
  return bytes;
}

}  // namespace

Graph filter_by_tiles(const Graph& graph) {
  const int64_t workspace = std::max(kAlwaysBearable, image_bytes(graph) / 8);
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = node_at(index);
    const Node& node = graph.node(id);
    if (!is_candidate(graph, node)) {
      rewriter.copy(id);
      continue;
    }
    Attributes attributes = node.attributes;
    attributes.set("winograd", workspace);
    copy_with(rewriter, id, rewriter.map(node.inputs), attributes);
  }
  return rewriter.finish();
}

}  // namespace weft::passes
