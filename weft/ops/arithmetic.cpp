// Arithmetic, comparison and selection with NumPy broadcasting. One table row per op.
#include <fmt/format.h>

#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"
#include "weft/ops/elementwise.h"

namespace weft::ops {

namespace {

using Range = OpExample::Range;
constexpr Range kBelowZero{-1, -0.1}, kAboveZero{0.1, 1};

/// The gradient for one operand of a binary op; it has the output's shape and is summed to the operand's afterwards.
using BinaryDerivative = ValueId (*)(Graph&, ValueId dy, ValueId a, ValueId b, ValueId y);

/// Example calls that stretch either operand, both, and scalars.
std::vector<OpExample> broadcast_examples(Range a, Range b) {
  const std::vector<Range> ranges{a, b};
  return {
      {"equal shapes", {f32({3, 5}), f32({3, 5})}, {}, ranges},
      {"bias on the last axis", {f32({2, 3, 5}), f32({5})}, {}, ranges},
      {"left operand stretches", {f32({3}), f32({2, 3})}, {}, ranges},
      {"both stretch", {f32({2, 1, 3}), f32({4, 1})}, {}, ranges},
      {"per channel", {f32({2, 3, 2, 2}), f32({1, 3, 1, 1})}, {}, ranges},
      {"scalar on the right", {f32({7}), f32({})}, {}, ranges},
      {"scalar on the left", {f32({}), f32({3, 2})}, {}, ranges},
      {"one element of higher rank", {f32({3}), f32({1, 1})}, {}, ranges},
  };
}

OpDef arithmetic(std::string name, std::string summary, BinaryDerivative for_a, BinaryDerivative for_b,
                 const std::vector<std::pair<Range, Range>>& ranges) {
  OpDef op = on_numbers(binary(std::move(name), std::move(summary)));
  op.gradient = [for_a, for_b](GradContext& context) -> std::vector<ValueId> {
    Graph& graph = context.graph;
    const ValueId dy = context.output_gradients[0], a = context.inputs[0], b = context.inputs[1];
    const Shape shape_a = graph.shape(a), shape_b = graph.shape(b);
    const ValueId da = for_a(graph, dy, a, b, context.outputs[0]), db = for_b(graph, dy, a, b, context.outputs[0]);
    return {sum_to_shape(graph, da, shape_a), sum_to_shape(graph, db, shape_b)};
  };
  for (const auto& [a, b] : ranges)
    for (OpExample& example : broadcast_examples(a, b)) op.examples.push_back(std::move(example));
  return op;
}

/// Maximum and minimum. Their operands interleave in one example only: elsewhere stretched ones might come close.
OpDef selection(std::string name, std::string summary, BinaryDerivative for_a, BinaryDerivative for_b) {
  OpDef op = arithmetic(std::move(name), std::move(summary), for_a, for_b,
                        {{kBelowZero, kAboveZero}, {kAboveZero, kBelowZero}});
  // Fifteen midpoints 2/15 apart, those of b half-way between those of a.
  constexpr double half = 1.0 / 15;
  op.examples.push_back({"interleaved", {f32({3, 5}), f32({3, 5})}, {}, {{-1, 1, true}, {-1 + half, 1 + half, true}}});
  return op;
}

/// What a comparison of operands of this type gives: numbers that a network multiplies with, or booleans.
DType mask_dtype(DType operands) {
  switch (operands) {
    case DType::f32:
    case DType::bf16:
    case DType::f16:
      return operands;
    case DType::i32:
      return DType::f32;
    default:
      return DType::boolean;
  }
}

OpDef comparison(std::string name, std::string summary) {
  OpDef op = binary(std::move(name), std::move(summary));
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(1, context.dtype(0));
    return {typed(mask_dtype(context.dtype(0)), broadcast_operands(context, 0, 1))};
  };
  // Constant between the jumps: nothing flows back, so that a comparison can serve as a mask.
  op.gradient = [](GradContext&) -> std::vector<ValueId> { return {ValueId{}, ValueId{}}; };
  op.examples = {
      {"integers", {i32({3, 5}), i32({3, 5})}, {}, {{0, 3}, {0, 3}}},
      {"integers, both stretch", {i32({2, 1, 3}), i32({4, 1})}, {}, {{-2, 2}, {-2, 2}}},
      {"integer scalar", {i32({9}), i32({})}, {}, {{0, 2}, {0, 2}}},
      {"reals, larger left", {f32({2, 3}), f32({3})}, {}, {{0.5, 1}, {-1, 0.2}}},
      {"reals, larger right", {f32({}), f32({2, 3, 1, 2})}, {}, {{-1, 0.2}, {0.5, 1}}},
  };
  return op;
}

/// 1 where `larger` wins over `other`, 1/2 where they tie, so that the two masks of a pair add up to 1.
ValueId winner(Graph& graph, ValueId larger, ValueId other) {
  return add(graph, greater(graph, larger, other), multiply_scalar(graph, equal(graph, larger, other), 0.5));
}

/// With the conventions of PyTorch at a = 0 and b = 0, where the formulas would give 0 times infinity.
OpDef pow_op() {
  OpDef op = on_numbers(binary("pow", "a to the power of b; of integers, 0 where b is negative and |a| is not 1."));
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    Graph& graph = context.graph;
    const ValueId dy = context.output_gradients[0], a = context.inputs[0], b = context.inputs[1];
    const Shape shape_a = graph.shape(a), shape_b = graph.shape(b);
    const ValueId zero = constant(graph, {}, 0);
    const ValueId slope_a = multiply(graph, b, pow(graph, a, add_scalar(graph, b, -1)));
    const ValueId da = where(graph, equal(graph, b, zero), zero, multiply(graph, dy, slope_a));
    const ValueId at_zero = multiply(graph, equal(graph, a, zero), greater_equal(graph, b, zero));
    const ValueId slope_b = multiply(graph, context.outputs[0], log(graph, a));
    const ValueId db = where(graph, at_zero, zero, multiply(graph, dy, slope_b));
    return {sum_to_shape(graph, da, shape_a), sum_to_shape(graph, db, shape_b)};
  };
  op.examples = broadcast_examples(kDivisor, {-1, 2});
  return op;
}

OpDef where_op() {
  OpDef op = binary("where", "a where the condition is not 0, else b; the other one's NaN does not matter.");
  op.inputs = {"condition", "a", "b"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const bool is_boolean = context.dtype(0) == DType::boolean;
    const DType dtype = is_boolean ? context.dtype(1) : context.require_compute_dtype(0);
    for (const int operand : {1, 2}) context.require_dtype(operand, dtype);
    const Shape chosen = broadcast_operands(context, 1, 2);
    const auto shape = broadcast_shapes(context.shape(0), chosen);
    if (!shape)
      context.fail(fmt::format("{} does not broadcast with {}, the shape of what it chooses from", context.describe(0),
                               to_string(chosen)));
    return {typed(dtype, *shape)};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    Graph& graph = context.graph;
    const ValueId dy = context.output_gradients[0], condition = context.inputs[0];
    const Shape shape_a = graph.shape(context.inputs[1]), shape_b = graph.shape(context.inputs[2]);
    const ValueId zero = constant(graph, {}, 0);
    return {ValueId{}, sum_to_shape(graph, where(graph, condition, dy, zero), shape_a),
            sum_to_shape(graph, where(graph, condition, zero, dy), shape_b)};
  };
  op.in_place = {{0, 0}, {0, 1}, {0, 2}};
  // Far from 0, but for the operands that are masks already.
  const Range holds{0.5, 1}, mixed{-1, 1, true};
  const TensorType matrix = f32({3, 5}), image = f32({2, 3, 2, 2});
  op.examples = {
      {"equal shapes", {matrix, matrix, matrix}, {}, {kBothSigns, {}, {}}},
      {"all chosen", {f32({7}), f32({7}), f32({7})}, {}, {holds, {}, {}}},
      {"scalars to choose from", {matrix, f32({}), f32({})}, {}, {kBothSigns, {}, {}}},
      {"mask of the last axis", {f32({5}), f32({2, 3, 5}), f32({})}, {}, {mixed, {}, {}}},
      {"per channel", {f32({1, 3, 1, 1}), image, image}, {}, {kBothSigns, {}, {}}},
      {"all stretch", {f32({2, 1, 1}), f32({3, 1}), f32({4})}, {}, {kBothSigns, {}, {}}},
      {"scalar condition", {f32({}), image, f32({1})}, {}, {holds, {}, {}}},
  };
  return op;
}

}  // namespace

void add_arithmetic(OpRegistry& registry) {
  const Range any{-1, 1};
  registry.add(along(arithmetic(
                         "add", "a + b.", [](Graph&, ValueId dy, ValueId, ValueId, ValueId) { return dy; },
                         [](Graph&, ValueId dy, ValueId, ValueId, ValueId) { return dy; }, {{any, any}}),
                     linear_dimensions));
  registry.add(along(arithmetic(
                         "subtract", "a - b.", [](Graph&, ValueId dy, ValueId, ValueId, ValueId) { return dy; },
                         [](Graph& g, ValueId dy, ValueId, ValueId, ValueId) { return negate(g, dy); }, {{any, any}}),
                     linear_dimensions));
  registry.add(arithmetic(
      "multiply", "a * b.", [](Graph& g, ValueId dy, ValueId, ValueId b, ValueId) { return multiply(g, dy, b); },
      [](Graph& g, ValueId dy, ValueId a, ValueId, ValueId) { return multiply(g, dy, a); }, {{any, any}}));
  registry.add(arithmetic(
      "divide", "a / b.", [](Graph& g, ValueId dy, ValueId, ValueId b, ValueId) { return divide(g, dy, b); },
      [](Graph& g, ValueId dy, ValueId, ValueId b, ValueId y) { return negate(g, multiply(g, dy, divide(g, y, b))); },
      {{any, kDivisor}}));
  registry.add(selection(
      "maximum", "The larger of a and b; where they are equal each takes half of the gradient.",
      [](Graph& g, ValueId dy, ValueId a, ValueId b, ValueId) { return multiply(g, dy, winner(g, a, b)); },
      [](Graph& g, ValueId dy, ValueId a, ValueId b, ValueId) { return multiply(g, dy, winner(g, b, a)); }));
  registry.add(selection(
      "minimum", "The smaller of a and b; where they are equal each takes half of the gradient.",
      [](Graph& g, ValueId dy, ValueId a, ValueId b, ValueId) { return multiply(g, dy, winner(g, b, a)); },
      [](Graph& g, ValueId dy, ValueId a, ValueId b, ValueId) { return multiply(g, dy, winner(g, a, b)); }));
  registry.add(comparison(
      "equal", "1 where a equals b, else 0; a boolean where the operands are neither f32, bf16, f16 nor i32."));
  registry.add(comparison("greater", "1 where a is greater than b, else 0, of the type that equal gives."));
  registry.add(
      comparison("greater_equal", "1 where a is greater than b or equal to it, else 0, of the type that equal gives."));
  registry.add(pow_op());
  registry.add(where_op());
}

ValueId add(Graph& graph, ValueId a, ValueId b, const std::string& name) { return graph.add("add", {a, b}, {}, name); }
ValueId subtract(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("subtract", {a, b}, {}, name);
}
ValueId multiply(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("multiply", {a, b}, {}, name);
}
ValueId divide(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("divide", {a, b}, {}, name);
}
ValueId maximum(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("maximum", {a, b}, {}, name);
}
ValueId minimum(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("minimum", {a, b}, {}, name);
}
ValueId equal(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("equal", {a, b}, {}, name);
}
ValueId greater(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("greater", {a, b}, {}, name);
}
ValueId greater_equal(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("greater_equal", {a, b}, {}, name);
}
ValueId less(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return greater(graph, b, a, name.empty() ? "less" : name);
}
ValueId less_equal(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return greater_equal(graph, b, a, name.empty() ? "less_equal" : name);
}
ValueId not_equal(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  const std::string hint = name.empty() ? "not_equal" : name;
  const ValueId same = equal(graph, a, b);
  if (graph.type(same).dtype == DType::boolean) return logical_not(graph, same, hint);
  return add_scalar(graph, negate(graph, same), 1, hint);
}
ValueId where(Graph& graph, ValueId condition, ValueId a, ValueId b, const std::string& name) {
  return graph.add("where", {condition, a, b}, {}, name);
}
ValueId pow(Graph& graph, ValueId a, ValueId b, const std::string& name) { return graph.add("pow", {a, b}, {}, name); }

}  // namespace weft::ops
