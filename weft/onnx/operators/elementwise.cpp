// Arithmetic element by element, and bits.
#include <algorithm>
#include <limits>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

using Unary = ValueId (*)(Graph&, ValueId, const std::string&);
using Binary = ValueId (*)(Graph&, ValueId, ValueId, const std::string&);

/// Functions of reals.
Convert real_function(Unary function) {
  return [function](NodeContext& node) -> std::vector<ValueId> {
    return {computed_in_reals(node.graph(), node.value(0),
                              [&](ValueId x) { return function(node.graph(), x, node.hint()); })};
  };
}

/// Those that take every type of numbers.
Convert any_number(Unary function) {
  return [function](NodeContext& node) -> std::vector<ValueId> {
    return {function(node.graph(), node.value(0), node.hint())};
  };
}

/// Of versions before 7 the second operand is broadcast along an axis that is named.
ValueId second_operand(NodeContext& node) {
  if (node.opset() >= 7 || node.integer("broadcast", 0) == 0 || !node.has_attribute("axis")) return node.value(1);
  const int64_t behind = node.rank(0) - node.rank(1) - resolve_axis(node, node.integer("axis"), node.rank(0));
  std::vector<int64_t> shape = node.shape(1).dims();
  shape.insert(shape.end(), static_cast<size_t>(std::max<int64_t>(0, behind)), 1);
  return ops::reshape(node.graph(), node.value(1), shape);
}

Convert binary(Binary function) {
  return [function](NodeContext& node) -> std::vector<ValueId> {
    return {function(node.graph(), node.value(0), second_operand(node), node.hint())};
  };
}

/// Folds any number of operands into one.
Convert variadic(Binary function, bool is_mean = false) {
  return [function, is_mean](NodeContext& node) -> std::vector<ValueId> {
    ValueId result = node.value(0);
    for (int input = 1; input < node.input_count(); ++input)
      result = function(node.graph(), result, node.value(input), node.hint());
    if (is_mean && node.input_count() > 1)
      result = computed_in_reals(node.graph(), result, [&](ValueId sum) {
        return ops::multiply_scalar(node.graph(), sum, 1.0 / node.input_count(), node.hint());
      });
    return {result};
  };
}

/// What a power is computed in: whole numbers to whole ones stay whole, as large as they are.
DType dtype_of_power(DType base, DType exponent) {
  if (is_floating(base)) return base;
  if (is_floating(exponent)) return DType::f64;
  return base == DType::u64 ? DType::u64 : DType::i64;
}

/// The exponent may be of another type than the base, whose type the result has; it is cut off towards zero where that
/// type is whole.
std::vector<ValueId> convert_pow(NodeContext& node) {
  Graph& graph = node.graph();
  const DType dtype = node.dtype(0);
  const DType inner = dtype_of_power(dtype, node.dtype(1));
  const auto as_inner = [&](ValueId x) { return graph.type(x).dtype == inner ? x : ops::cast(graph, x, inner); };
  const Tensor* exponent = node.find_known(1);
  ValueId result;
  if (is_floating(inner) && exponent != nullptr && exponent->elements() == 1 && node.rank(1) <= node.rank(0))
    result = ops::pow_scalar(graph, as_inner(node.value(0)), node.known_real(1), node.hint());
  else
    result = ops::pow(graph, as_inner(node.value(0)), as_inner(node.value(1)), node.hint());
  return {inner == dtype ? result : ops::cast(graph, result, dtype, node.hint())};
}

std::vector<ValueId> convert_mod(NodeContext& node) {
  const bool truncated = node.integer("fmod", 0) != 0;
  return {ops::modulo(node.graph(), node.value(0), node.value(1), truncated, node.hint())};
}

std::vector<ValueId> convert_clip(NodeContext& node) {
  Graph& graph = node.graph();
  const DType dtype = node.dtype(0);
  const bool has_inputs = node.opset() >= 11;
  const bool has_low = has_inputs ? node.has(1) : node.has_attribute("min");
  const bool has_high = has_inputs ? node.has(2) : node.has_attribute("max");
  const bool is_known =
      !has_inputs || ((!has_low || node.find_known(1) != nullptr) && (!has_high || node.find_known(2) != nullptr));
  if (is_known && is_compute_dtype(dtype)) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    const double low = !has_low ? -kLargest : has_inputs ? node.known_real(1) : node.real("min", 0);
    const double high = !has_high ? kLargest : has_inputs ? node.known_real(2) : node.real("max", 0);
    if (low <= high && has_low && has_high) return {ops::clip(graph, node.value(0), low, high, node.hint())};
    if (has_low && !has_high && low == 0) return {ops::relu(graph, node.value(0), node.hint())};
  }
  ValueId result = node.value(0);
  const auto bound = [&](int input, const char* name) {
    return has_inputs ? node.value(input) : scalar_like(graph, result, node.real(name, 0));
  };
  if (has_low) result = ops::maximum(graph, result, bound(1, "min"), node.hint());
  if (has_high) result = ops::minimum(graph, result, bound(2, "max"), node.hint());
  return {result};
}

std::vector<ValueId> convert_shift(NodeContext& node) {
  const std::string direction = node.text("direction", "");
  if (direction == "LEFT") return {ops::shift_left(node.graph(), node.value(0), node.value(1), node.hint())};
  if (direction == "RIGHT") return {ops::shift_right(node.graph(), node.value(0), node.value(1), node.hint())};
  node.fail("has the unknown direction '" + direction + "'");
}

}  // namespace

void add_elementwise(OperatorTable& table) {
  const std::string family = "elementwise";
  table.add(family, "Add", binary(ops::add));
  table.add(family, "Sub", binary(ops::subtract));
  table.add(family, "Mul", binary(ops::multiply));
  table.add(family, "Div", binary(ops::divide));
  table.add(family, "Pow", convert_pow);
  table.add(family, "Mod", convert_mod);
  table.add(family, "Max", variadic(ops::maximum));
  table.add(family, "Min", variadic(ops::minimum));
  table.add(family, "Sum", variadic(ops::add));
  table.add(family, "Mean", variadic(ops::add, true));
  table.add(family, "Neg", any_number(ops::negate));
  table.add(family, "Abs", any_number(ops::absolute));
  table.add(family, "Sign", any_number(ops::sign));
  table.add(family, "Exp", real_function(ops::exp));
  table.add(family, "Log", real_function(ops::log));
  table.add(family, "Sqrt", real_function(ops::sqrt));
  table.add(family, "Reciprocal", real_function(ops::reciprocal));
  table.add(family, "Erf", real_function(ops::erf));
  table.add(family, "Floor", real_function(ops::floor));
  table.add(family, "Ceil", real_function(ops::ceil));
  table.add(family, "Round", real_function(ops::round));
  table.add(family, "Sin", real_function(ops::sin));
  table.add(family, "Cos", real_function(ops::cos));
  table.add(family, "Tan", real_function(ops::tan));
  table.add(family, "Asin", real_function(ops::asin));
  table.add(family, "Acos", real_function(ops::acos));
  table.add(family, "Atan", real_function(ops::atan));
  table.add(family, "Sinh", real_function(ops::sinh));
  table.add(family, "Cosh", real_function(ops::cosh));
  table.add(family, "Asinh", real_function(ops::asinh));
  table.add(family, "Acosh", real_function(ops::acosh));
  table.add(family, "Atanh", real_function(ops::atanh));
  table.add(family, "Clip", convert_clip);
  table.add("bits", "BitShift", convert_shift);
  table.add("bits", "BitwiseAnd", binary(ops::bitwise_and));
  table.add("bits", "BitwiseOr", binary(ops::bitwise_or));
  table.add("bits", "BitwiseXor", binary(ops::bitwise_xor));
  table.add("bits", "BitwiseNot", any_number(ops::bitwise_not));
}

}  // namespace weft::onnx
