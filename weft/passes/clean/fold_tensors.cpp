#include "weft/passes/clean/fold_tensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "weft/graph/collective.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/kept.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/space_copies.h"
#include "weft/passes/clean/eliminate_dead_code.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

constexpr int64_t kSmallBytes = 64 << 10;

/// Ops that do something beside computing: they update, exchange, store.
bool acts(const Node& node) {
  constexpr std::array<std::string_view, 6> names{kStore, kLoad, kCopyToDevice, kCopyToHost, kRenew, kOwnPart};
  return node.op->is_update || is_message(node) || find_collective(node) != nullptr ||
         std::find(names.begin(), names.end(), node.op->name) != names.end();
}

class TensorFolder {
 public:
  TensorFolder(const Graph& graph, const Backend& backend)
      : graph_(graph), backend_(backend), rewriter_(graph), constants_(graph.values().size()) {}

  Graph run() {
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const NodeId id = node_at(index);
      const Node& node = graph_.node(id);
      if (is_constant_tensor(node)) constants_[index_of(node.outputs[0])] = constant_of(node);
      if (!fold(id)) rewriter_.copy(id);
    }
    Graph result = rewriter_.finish();
    return has_folded_ ? eliminate_dead_code(result) : std::move(result);
  }

 private:
  bool is_fill(const Node& node) const { return node.op->name == "constant" || node.op->name == "iota"; }

  /// The operand's data; nullopt where it is no constant, or a large fill.
  std::optional<Constant> data_of(ValueId value) {
    if (constants_[index_of(value)]) return constants_[index_of(value)];
    const Node* node = graph_.producer(value);
    if (node == nullptr || !is_fill(*node) || graph_.type(value).bytes() > kSmallBytes) return std::nullopt;
    const auto results = backend_.evaluate(signature_of(graph_, graph_.value(value).producer), {});
    return results ? std::optional(Constant(results->front())) : std::nullopt;
  }

  /// Before anything is computed: whether the node is one to fold.
  bool may_fold(const Node& node) const {
    if (acts(node) || node.inputs.empty()) return false;
    bool has_tensor = false;
    int64_t operand_bytes = 0, result_bytes = 0;
    for (const ValueId input : node.inputs) {
      const bool is_tensor = constants_[index_of(input)].has_value();
      const Node* producer = graph_.producer(input);
      if (!is_tensor && (producer == nullptr || !is_fill(*producer))) return false;
      has_tensor = has_tensor || is_tensor || producer->op->name == "iota";
      operand_bytes += graph_.type(input).bytes();
    }
    for (const ValueId output : node.outputs) result_bytes += graph_.type(output).bytes();
    // What fills up blocks is less than the numbers themselves, and saves the reorder in each run.
    const int64_t most_bytes = node.op->name == "reorder" ? 2 * operand_bytes : operand_bytes;
    return has_tensor && result_bytes <= std::max(most_bytes, kSmallBytes);
  }

  bool fold(NodeId id) {
    const Node& node = graph_.node(id);
    if (!may_fold(node)) return false;
    std::vector<Tensor> operands;
    for (const ValueId input : node.inputs) {
      const auto data = data_of(input);
      if (!data) return false;
      operands.push_back((*data)->tensor());
    }
    if (node.op->is_view) {
      replace(node.outputs[0], operands[0].reinterpreted(graph_.type(node.outputs[0])));
      return true;
    }
    const auto results = backend_.evaluate(signature_of(graph_, id), operands);
    if (!results) return false;
    for (size_t index = 0; index < node.outputs.size(); ++index) replace(node.outputs[index], (*results)[index]);
    return true;
  }

  void replace(ValueId old_value, Tensor tensor) {
    Constant data(std::move(tensor));
    constants_[index_of(old_value)] = data;
    rewriter_.replace(old_value, rewriter_.result().add(kConstantTensor, {}, {{kConstantData, std::move(data)}},
                                                        graph_.value(old_value).name));
    has_folded_ = true;
  }

  const Graph& graph_;
  const Backend& backend_;
  Rewriter rewriter_;
  std::vector<std::optional<Constant>> constants_;  // per value of the source
  bool has_folded_ = false;
};

}  // namespace

Graph fold_tensors(const Graph& graph, const Backend& backend) {
  const bool has_constants = std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return is_constant_tensor(node) || node.op->name == "iota";
  });
  return has_constants ? TensorFolder(graph, backend).run() : graph;
}

}  // namespace weft::passes
