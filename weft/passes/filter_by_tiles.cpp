#include "weft/passes/filter_by_tiles.h"

#include "weft/passes/rebuild.h"

namespace weft::passes {

namespace {

bool is_candidate(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  const bool is_weights = op == "conv2d_backward_weights";
  if (!is_weights && op != "conv2d" && op != "conv2d_backward_data") return false;
  using Pair = std::vector<int64_t>;
  const Shape& weights = graph.shape(is_weights ? node.outputs[0] : node.inputs[1]);
  return graph.type(node.inputs[0]).dtype == DType::bf16 && weights[2] == 3 && weights[3] == 3 &&
         node.attributes.integers("stride") == Pair{1, 1} && node.attributes.integers("dilation") == Pair{1, 1} &&
         node.attributes.integer("groups") == 1;
}

}  // namespace

Graph filter_by_tiles(const Graph& graph) {
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = node_at(index);
    const Node& node = graph.node(id);
    if (!is_candidate(graph, node)) {
      rewriter.copy(id);
      continue;
    }
    Attributes attributes = node.attributes;
    attributes.set("winograd", true);
    copy_with(rewriter, id, rewriter.map(node.inputs), attributes);
  }
  return rewriter.finish();
}

}  // namespace weft::passes
