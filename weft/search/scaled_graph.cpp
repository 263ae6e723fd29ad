#include "weft/search/scaled_graph.h"

#include "weft/base/error.h"
#include "weft/graph/signature_key.h"
#include "weft/passes/support/rebuild.h"

namespace weft::search {

namespace {

void require_same_nodes(const Graph& small, const Graph& large) {
  bool is_same = small.nodes().size() == large.nodes().size() && small.values().size() == large.values().size();
  for (size_t at = 0; is_same && at < small.nodes().size(); ++at)
    is_same = small.nodes()[at].op == large.nodes()[at].op;
  if (!is_same)
    fail(ErrorKind::usage,
         "[{}] does other things with {} samples than with {}, so that no strategy can be searched for; set "
         "strategy=manual",
         small.name(), kSmallRows, kLargeRows);
}

}  // namespace

ScaledGraph::ScaledGraph(Graph small, Graph large) : small_(std::move(small)), large_(std::move(large)) {
  require_same_nodes(small_, large_);
  std::unordered_map<std::string, size_t> known;
  for (size_t at = 0; at < small_.nodes().size(); ++at) {
    const NodeId id = passes::node_at(at);
    by_name_[small_.node_name(id)] = id.index;
    const std::string key = signature_key(signature_of(small_, id)) + signature_key(signature_of(large_, id));
    const auto [found, is_new] = known.emplace(key, examples_.size());
    if (is_new) examples_.push_back(id);
    classes_.push_back(found->second);
  }
}

int64_t ScaledGraph::scaled(int64_t small, int64_t large, int64_t rows) const {
  return small + (large - small) * (rows - kSmallRows) / (kLargeRows - kSmallRows);
}

int64_t ScaledGraph::bytes(ValueId value, int64_t rows) const {
  const TensorType& type = small_.type(value);
  int64_t elements = 1;
  for (int dimension = 0; dimension < type.shape.rank(); ++dimension)
    elements *= scaled(type.shape[dimension], large_.shape(value)[dimension], rows);
  return byte_size(type.dtype, elements);
}

NodeSignature ScaledGraph::signature(NodeId node, int64_t rows) const {
  NodeSignature signature = signature_of(small_, node);
  const Node& large = large_.node(node);
  const auto scale = [&](TensorType& type, ValueId of_large) {
    std::vector<int64_t> dims = type.shape.dims();
    for (size_t at = 0; at < dims.size(); ++at)
      dims[at] = scaled(dims[at], large_.shape(of_large)[static_cast<int>(at)], rows);
    type.shape = Shape(dims);
  };
  for (size_t at = 0; at < signature.inputs.size(); ++at) scale(signature.inputs[at], large.inputs[at]);
  for (size_t at = 0; at < signature.outputs.size(); ++at) scale(signature.outputs[at], large.outputs[at]);
  return signature;
}

NodeId ScaledGraph::find_node(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? NodeId{} : NodeId{found->second};
}

double ScaledTimes::seconds(NodeId node, int64_t rows) {
  if (graph_.graph().node(node).op->is_view) return 0;
  const auto [known, is_new] = known_.try_emplace({graph_.class_of(node), rows}, 0);
  if (is_new)
    known->second =
        times_.of(graph_.signature(graph_.example(graph_.class_of(node)), rows), "").seconds + times_.seconds_per_node;
  return known->second;
}

NodeCost CostsOfRows::cost_of(const NodeSignature& node, int threads) const {
  const NodeId id = graph_.find_node(node.name);
  if (!id.valid()) return costs_.cost_of(node, threads);
  const auto [known, is_new] = known_.try_emplace(graph_.class_of(id));
  if (is_new) known->second = costs_.cost_of(graph_.signature(id, rows_), threads);
  return known->second;
}

}  // namespace weft::search
