#include "weft/passes/clean/fold_constants.h"

#include <array>
#include <cmath>
#include <optional>

#include "weft/ops/scalar_math.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

class Folder {
 public:
  explicit Folder(const Graph& graph)
      : graph_(graph),
        rewriter_(graph),
        users_(find_users(graph)),
        is_result_(find_results(graph)),
        constant_(graph.values().size()) {}

  Graph run() {
    for (size_t index = 0; index < graph_.nodes().size(); ++index) visit(node_at(index));
    return rewriter_.finish();
  }

 private:
  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op->name == "constant" && !node.attributes.exact_integer("value"))
      constant_[index_of(node.outputs[0])] = node.attributes.real("value");
    if (node.outputs.size() == 1 && !node.op->is_update && graph_.type(node.outputs[0]).layout.is_plain()) {
      const ValueId output = node.outputs[0];
      if (const auto value = constant_result(node)) {
        constant_[index_of(output)] = value;
        rewriter_.replace(output, add_constant(rewriter_.result(), graph_.type(output), *value, graph_.node_name(id)));
        return;
      }
      const ValueId simple = simplify(node);
      // The caller reads results after the step, when the inputs' buffers hold other values.
      if (simple.valid() && (!is_result_[index_of(output)] || rewriter_.result().producer(simple) != nullptr)) {
        rewriter_.replace(output, simple);
        return;
      }
    }
    rewriter_.copy(id);
  }

  std::optional<double> constant_of(const Node& node, size_t input) const {
    return constant_[index_of(node.inputs[input])];
  }

  /// The number that fills the node's output where all its operands are constants and it can be folded.
  std::optional<double> constant_result(const Node& node) const {
    if (node.inputs.empty()) return std::nullopt;
    bool all_f32 = graph_.type(node.outputs[0]).dtype == DType::f32;
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      if (!constant_of(node, input)) return std::nullopt;
      all_f32 = all_f32 && graph_.type(node.inputs[input]).dtype == DType::f32;
    }
    const std::string& op = node.op->name;
    const double first = *constant_of(node, 0);
    if (op == "reshape" || op == "transpose" || op == "broadcast_to" || op == "slice" || op == "strided_slice" ||
        op == "reduce_max")
      return first;
    if (!all_f32) return std::nullopt;
    ops::ScalarInstruction instruction{};
    if (!ops::scalar_instruction(op, node.attributes, instruction)) return std::nullopt;
    if (!ops::is_exactly_rounded(instruction.op)) return std::nullopt;
    std::array<float, 3> values{};
    for (size_t input = 0; input < node.inputs.size(); ++input)
      values[input] = static_cast<float>(*constant_of(node, input));
    const float value = ops::evaluate_scalar(instruction, values[0], values[1], values[2]);
    return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
  }

  /// A value that equals the node's output at less cost, perhaps of a new node; invalid where there is none.
  ValueId simplify(const Node& node) {
    const std::string& op = node.op->name;
    const ValueId output = node.outputs[0];
    if (op == "reshape" || op == "broadcast_to" || op == "cast")
      return graph_.type(node.inputs[0]) == graph_.type(output) ? rewriter_.map(node.inputs[0]) : ValueId{};
    if (op == "add_scalar") return shift(node.inputs[0], node.attributes.real("value"), output);
    if (op == "multiply_scalar") return scale(node.inputs[0], node.attributes.real("value"), output);
    if (node.inputs.size() != 2 || graph_.type(output).dtype != DType::f32) return {};
    for (size_t side = 0; side < 2; ++side) {  // the side that is constant
      const ValueId other = node.inputs[1 - side];
      if (!constant_of(node, side) || graph_.type(other) != graph_.type(output)) continue;
      const double value = static_cast<float>(*constant_of(node, side));
      if (op == "add") return shift(other, value, output);
      if (op == "subtract" && side == 1) return shift(other, -value, output);
      if (op == "multiply") return scale(other, value, output);
      int exponent = 0;
      const bool power_of_two = std::abs(std::frexp(value, &exponent)) == 0.5 && std::abs(exponent) < 100;
      if (op == "divide" && side == 1 && power_of_two) return scale(other, 1 / value, output);
    }
    return {};
  }

  ValueId shift(ValueId x, double value, ValueId output) {
    if (value == 0) return rewriter_.map(x);
    return rewriter_.result().add("add_scalar", {rewriter_.map(x)}, {{"value", value}}, graph_.value(output).name);
  }

  ValueId scale(ValueId x, double value, ValueId output) {
    if (value == 1) return rewriter_.map(x);
    ValueId base = rewriter_.map(x);
    const Node* inner = rewriter_.result().producer(base);
    if (inner != nullptr && inner->op->name == "multiply_scalar" && users_[index_of(x)].size() == 1 &&
        !is_result_[index_of(x)]) {
      const float product = static_cast<float>(inner->attributes.real("value")) * static_cast<float>(value);
      if (std::isnormal(product)) {
        value = product;
        base = inner->inputs[0];
      }
    }
    return rewriter_.result().add("multiply_scalar", {base}, {{"value", value}}, graph_.value(output).name);
  }

  const Graph& graph_;
  Rewriter rewriter_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
  std::vector<std::optional<double>> constant_;  // per value of the source: the number that fills it
};

}  // namespace

Graph fold_constants(const Graph& graph) { return Folder(graph).run(); }

}  // namespace weft::passes
