#include "weft/passes/integer/fuse_requantize.h"

#include <optional>
#include <vector>

#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

class RequantizeFuser {
 public:
  explicit RequantizeFuser(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), is_result_(find_results(graph)), rewriter_(graph) {}

  Graph run() {
    std::vector<bool> joined(graph_.nodes().size(), false);
    std::vector<std::optional<NodeId>> products(graph_.nodes().size());
    for (size_t index = 0; index < graph_.nodes().size(); ++index)
      if (const auto product = find(node_at(index))) {
        products[index] = product;
        joined[index_of(*product)] = true;
      }
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (products[index])
        emit(node_at(index), *products[index]);
      else if (!joined[index])
        rewriter_.copy(node_at(index));
    }
    return rewriter_.finish();
  }

 private:
  /// The product whose sums a requantize takes, where both can be one.
  std::optional<NodeId> find(NodeId id) const {
    const Node& requantize = graph_.node(id);
    if (requantize.op->name != "requantize") return std::nullopt;
    const ValueId sum = requantize.inputs[0];
    const Node* product = graph_.producer(sum);
    if (product == nullptr || users_[index_of(sum)].size() != 1 || is_result_[index_of(sum)]) return std::nullopt;
    const bool is_convolution = product->op->name == "integer_conv2d";
    if (!is_convolution && product->op->name != "integer_matmul") return std::nullopt;
    const int rank = graph_.shape(sum).rank(), channels = is_convolution ? 1 : rank - 1;
    int64_t axis = requantize.attributes.integer("axis");
    if (axis < 0) axis += rank;
    const bool has_bias = requantize.inputs.size() > 3;
    const bool by_channel =
        graph_.shape(requantize.inputs[1]).rank() == 1 || (has_bias && graph_.shape(requantize.inputs[3]).rank() == 1);
    if (by_channel && axis != channels) return std::nullopt;
    if (has_bias && graph_.shape(requantize.inputs[3]) != Shape{graph_.shape(sum)[channels]}) return std::nullopt;
    return graph_.value(sum).producer;
  }

  /// The product's zero points, 0 where it has none.
  std::vector<ValueId> operands_of(const Node& product) {
    std::vector<ValueId> operands = rewriter_.map(product.inputs);
    for (size_t missing = operands.size(); missing < 4; ++missing) {
      const DType dtype = graph_.type(product.inputs[missing - 2]).dtype;
      operands.push_back(add_constant(rewriter_.result(), {dtype, Shape{}, {}}, 0, "zero_point"));
    }
    return operands;
  }

  void emit(NodeId id, NodeId product_id) {
    const Node &requantize = graph_.node(id), &product = graph_.node(product_id);
    std::vector<ValueId> operands = operands_of(product);
    for (size_t input = 1; input < requantize.inputs.size(); ++input)
      operands.push_back(rewriter_.map(requantize.inputs[input]));
    Attributes attributes = product.attributes;
    for (const auto& [name, value] : requantize.attributes.values())
      if (name != "axis") attributes.set(name, value);
    const std::string op = product.op->name == "integer_conv2d" ? "quantized_conv2d" : "quantized_matmul";
    rewriter_.replace(requantize.outputs[0], rewriter_.result().add(op, operands, attributes, graph_.node_name(id)));
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
  Rewriter rewriter_;
};

}  // namespace

Graph fuse_requantize(const Graph& graph) { return RequantizeFuser(graph).run(); }

}  // namespace weft::passes
