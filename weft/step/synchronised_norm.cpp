#include "weft/step/synchronised_norm.h"

#include <map>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/graph/rewrite.h"
#include "weft/ops/ops.h"

namespace weft::step {

namespace {

class NormSynchroniser {
 public:
  NormSynchroniser(const Graph& graph, int ranks) : rewriter_(graph), ranks_(ranks) {}

  Graph run() {
    const Graph& source = rewriter_.source();
    for (size_t index = 0; index < source.nodes().size(); ++index) {
      const NodeId id{static_cast<int32_t>(index)};
      const std::string& op = source.node(id).op->name;
      if (op == "batch_norm")
        replace_forward(id);
      else if (op == "batch_norm_backward")
        replace_backward(id);
      else if (op == "running_average")
        replace_average(id);
      else
        copy(id);
    }
    return rewriter_.finish();
  }

 private:
  Graph& graph() { return rewriter_.result(); }

  void copy(NodeId id) {
    const Node& node = rewriter_.source().node(id);
    // Parts of statistics, of ranks that share the layer, are for running averages.
    if (node.op->name == kOwnPart || node.op->name == kAllGather)
      if (const auto count = counts_.find(node.inputs[0].index); count != counts_.end()) {
        counts_[node.outputs[0].index] = count->second;
        return rewriter_.copy(id);
      }
    for (const ValueId input : node.inputs)
      if (counts_.contains(input.index))
        fail(ErrorKind::usage,
             "[{}] '{}' reads the mean or the variance of a batch, whose gradient over all ranks is not known; set "
             "batch_norm=per_rank",
             rewriter_.source().name(), rewriter_.source().node_name(id));
    rewriter_.copy(id);
  }

  void replace_forward(NodeId id) {
    const Graph& source = rewriter_.source();
    const Node& node = source.node(id);
    const std::string& name = source.node_name(id);
    std::vector<ValueId> operands = rewriter_.map(node.inputs);
    const std::vector<ValueId> own = graph().add_node("batch_statistics", {operands[0]}, {}, name + ".of_part");
    const ValueId mean = over_ranks(own[0], name + ".mean");
    const ValueId distance = ops::subtract(graph(), own[0], mean);
    const ValueId around_mean = ops::add(graph(), own[1], ops::multiply(graph(), distance, distance));
    const ValueId variance = over_ranks(around_mean, name + ".variance");
    operands.insert(operands.begin() + 3, {mean, variance});
    rewriter_.replace(node.outputs[0], graph().add("batch_norm_inference", operands, node.attributes, name));
    rewriter_.replace(node.outputs[1], mean);
    rewriter_.replace(node.outputs[2], variance);
    const Shape& shape = source.shape(node.inputs[0]);
    for (const size_t output : {1, 2}) counts_[node.outputs[output].index] = shape.elements() / shape[1];
  }

  void replace_backward(NodeId id) {
    const Graph& source = rewriter_.source();
    const Node& node = source.node(id);
    const std::string& name = source.node_name(id);
    const std::vector<ValueId> operands = rewriter_.map(node.inputs);
    const std::vector<ValueId> own =
        graph().add_node("batch_norm_backward", operands, node.attributes, name + ".of_part");
    const ValueId input = operands[1], scale = operands[2], mean = operands[4], variance = operands[5];
    const ValueId sums = ops::concat(graph(), {own[1], own[2]}, 0, name + ".sums");
    const ValueId missing = ops::subtract(graph(), sums, over_ranks(sums, name + ".sums.mean"), name + ".missing");
    const Shape shape = graph().shape(input);
    const int64_t channels = shape[1];
    const auto half = [&](int64_t begin) { return ops::slice(graph(), missing, {begin}, {begin + channels}); };
    const ValueId shifted = ops::add_scalar(graph(), variance, node.attributes.real("epsilon"));
    const ValueId inverse = ops::reciprocal(graph(), ops::sqrt(graph(), shifted));
    const auto values = static_cast<double>(shape.elements() / channels);
    const ValueId gain = ops::multiply_scalar(graph(), ops::multiply(graph(), scale, inverse), 1 / values);
    const ValueId slope = ops::multiply(graph(), ops::multiply(graph(), gain, inverse), half(0), name + ".slope");
    const ValueId offset = ops::subtract(graph(), ops::multiply(graph(), gain, half(channels)),
                                         ops::multiply(graph(), mean, slope), name + ".offset");
    const ValueId line =
        ops::add(graph(), ops::multiply(graph(), input, per_channel(slope, shape)), per_channel(offset, shape));
    rewriter_.replace(node.outputs[0], ops::add(graph(), own[0], line, name));
    for (size_t output = 1; output < own.size(); ++output) rewriter_.replace(node.outputs[output], own[output]);
  }

  /// A variance that is made unbiased is so by the numbers of all ranks.
  void replace_average(NodeId id) {
    const Node& node = rewriter_.source().node(id);
    const auto count = counts_.find(node.inputs[1].index);
    Attributes attributes = node.attributes;
    if (count != counts_.end() && attributes.real("sample_factor") != 1) {
      const auto all = static_cast<double>(count->second * ranks_);
      attributes.set("sample_factor", all / (all - 1));
    }
    std::vector<ValueId> operands = rewriter_.map(node.inputs);
    const std::string& name = rewriter_.source().node_name(id);
    if (count == counts_.end()) operands[1] = over_ranks(operands[1], name);
    rewriter_.replace(node.outputs[0], graph().add("running_average", operands, attributes, name));
  }

  ValueId over_ranks(ValueId value, const std::string& name) {
    return ops::all_reduce(graph(), value, "mean", "all_reduce/" + name);
  }

  /// As it broadcasts over an input of that shape, in its type.
  ValueId per_channel(ValueId x, const Shape& shape) {
    std::vector<int64_t> dims(static_cast<size_t>(shape.rank()), 1);
    dims[1] = shape[1];
    return ops::reshape(graph(), x, dims);
  }

  Rewriter rewriter_;
  const int ranks_;
  std::map<int32_t, int64_t> counts_;  // numbers per channel of the part, by statistics of the source
};

}  // namespace

Graph synchronise_batch_norm(const Graph& graph, int ranks) { return NormSynchroniser(graph, ranks).run(); }

}  // namespace weft::step
