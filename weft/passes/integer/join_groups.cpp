#include "weft/passes/integer/join_groups.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "weft/graph/constant_node.h"
#include "weft/passes/integer/constants.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

constexpr int64_t kBlock = 16;      // output channels that kernels multiply at a time
constexpr int64_t kInnerGroup = 4;  // channels of the image likewise
constexpr int64_t kMostZeroPointBytes = int64_t{1} << 20;

bool is_integer_convolution(const Node& node) {
  return node.op->name == "integer_conv2d" || node.op->name == "quantized_conv2d";
}

/// How many groups become one; 1: they stay apart.
int64_t joined_groups(const Graph& graph, const Node& node) {
  const Shape& weight = graph.shape(node.inputs[1]);
  const int64_t groups = node.attributes.integer("groups");
  if (groups < 2 || graph.type(node.inputs[1]).dtype != DType::i8) return 1;
  const int64_t outputs = weight[0] / groups, channels = weight[1];
  if (outputs == 0 || (outputs == 1 && channels == 1) || outputs >= kBlock) return 1;
  for (int64_t count = std::min(groups, kBlock / outputs); count > 1; --count)
    if (groups % count == 0 && count * channels % kInnerGroup == 0) return count;
  return 1;
}

bool has_zero_point(const Graph& graph, const Node& node, const Backend& backend) {
  if (node.inputs.size() < 4) return false;
  const auto tensor = constant_value(graph, backend, node.inputs[3], kMostZeroPointBytes);
  if (!tensor) return true;
  const std::vector<double> numbers = numbers_of(*tensor);
  return std::any_of(numbers.begin(), numbers.end(), [](double number) { return number != 0; });
}

/// [O,C,KH,KW] of groups as [O,count C,KH,KW], zeros beside each group's own channels.
Tensor joined_weights(const Tensor& weights, int64_t groups, int64_t count) {
  const Shape& shape = weights.shape();
  Tensor joined(DType::i8, Shape{shape[0], shape[1] * count, shape[2], shape[3]});
  const int64_t own = shape[1] * shape[2] * shape[3], outputs = shape[0] / groups;
  for (int64_t output = 0; output < shape[0]; ++output)
    std::memcpy(joined.data_as<int8_t>() + (output * count + output / outputs % count) * own,
                weights.data_as<int8_t>() + output * own, static_cast<size_t>(own));
  return joined;
}

void emit(Rewriter& rewriter, NodeId id, const Tensor& weights, int64_t count) {
  const Graph& graph = rewriter.source();
  const Node& node = graph.node(id);
  const int64_t groups = node.attributes.integer("groups");
  std::vector<ValueId> operands = rewriter.map(node.inputs);
  operands[1] =
      rewriter.result().add(kConstantTensor, {}, {{kConstantData, Constant(joined_weights(weights, groups, count))}},
                            graph.value(node.inputs[1]).name + ".joined");
  Attributes attributes = node.attributes;
  attributes.set("groups", groups / count);
  copy_with(rewriter, id, operands, attributes);
}

}  // namespace

Graph join_groups(const Graph& graph, const Backend& backend) {
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = node_at(index);
    const Node& node = graph.node(id);
    const int64_t count = is_integer_convolution(node) ? joined_groups(graph, node) : 1;
    const Node* weights = count > 1 ? graph.producer(node.inputs[1]) : nullptr;
    if (weights != nullptr && is_constant_tensor(*weights) && !has_zero_point(graph, node, backend))
      emit(rewriter, id, constant_of(*weights)->tensor(), count);
    else
      rewriter.copy(id);
  }
  return rewriter.finish();
}

}  // namespace weft::passes
