// Comparisons, logic, and the choice between two values.
#include <limits>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

using Binary = ValueId (*)(Graph&, ValueId, ValueId, const std::string&);

Convert comparison(Binary function) {
  return [function](NodeContext& node) -> std::vector<ValueId> {
    Graph& graph = node.graph();
    // i32 compares as reals do, with results to multiply by; as i64 it gives booleans and loses nothing.
    const auto operand = [&](int input) {
      const ValueId x = node.value(input);
      return graph.type(x).dtype == DType::i32 ? ops::cast(graph, x, DType::i64) : x;
    };
    return {as_boolean(graph, function(graph, operand(0), operand(1), node.hint()))};
  };
}

Convert logic(Binary function) {
  return [function](NodeContext& node) -> std::vector<ValueId> {
    return {function(node.graph(), node.value(0), node.value(1), node.hint())};
  };
}

std::vector<ValueId> convert_not(NodeContext& node) {
  return {ops::logical_not(node.graph(), node.value(0), node.hint())};
}

std::vector<ValueId> convert_where(NodeContext& node) {
  return {ops::where(node.graph(), node.value(0), node.value(1), node.value(2), node.hint())};
}

std::vector<ValueId> convert_is_nan(NodeContext& node) {
  return {ops::logical_not(
      node.graph(), as_boolean(node.graph(), ops::equal(node.graph(), node.value(0), node.value(0))), node.hint())};
}

std::vector<ValueId> convert_is_inf(NodeContext& node) {
  Graph& graph = node.graph();
  const bool positive = node.integer("detect_positive", 1) != 0, negative = node.integer("detect_negative", 1) != 0;
  const ValueId x = node.value(0);
  const ValueId infinity = scalar_like(graph, x, std::numeric_limits<double>::infinity());
  if (positive && negative)
    return {as_boolean(graph, ops::equal(graph, ops::absolute(graph, x), infinity, node.hint()))};
  if (positive) return {as_boolean(graph, ops::equal(graph, x, infinity, node.hint()))};
  if (negative) return {as_boolean(graph, ops::equal(graph, ops::negate(graph, x), infinity, node.hint()))};
  const ValueId no = ops::constant(graph, DType::boolean, Shape{}, int64_t{0});
  return {ops::broadcast_to(graph, no, node.shape(0), node.hint())};
}

}  // namespace

void add_comparisons(OperatorTable& table) {
  const std::string family = "comparison and logic";
  table.add(family, "Equal", comparison(ops::equal));
  table.add(family, "Greater", comparison(ops::greater));
  table.add(family, "GreaterOrEqual", comparison(ops::greater_equal));
  table.add(family, "Less", comparison(ops::less));
  table.add(family, "LessOrEqual", comparison(ops::less_equal));
  table.add(family, "And", logic(ops::logical_and));
  table.add(family, "Or", logic(ops::logical_or));
  table.add(family, "Xor", logic(ops::logical_xor));
  table.add(family, "Not", convert_not);
  table.add(family, "Where", convert_where);
  table.add(family, "IsNaN", convert_is_nan);
  table.add(family, "IsInf", convert_is_inf);
}

}  // namespace weft::onnx
