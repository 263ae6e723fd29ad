// Elementwise ops: functions of one tensor, arithmetic and comparison of two with NumPy broadcasting, and the
// derivatives of relu and gelu that have a kernel of their own. One table row per op.
#include <utility>

#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

using Range = OpExample::Range;
constexpr Range kBelowZero{-1, -0.1}, kAboveZero{0.1, 1}, kDivisor{0.5, 2};
/// Both signs. Off centre, so that for the sizes of the examples no midpoint lies within a difference's step of 0.
constexpr Range kBothSigns{-1, 1.2, true};

/// Gradient of a unary op from the output's gradient dy, its input x and its output y.
using UnaryDerivative = ValueId (*)(Graph&, ValueId dy, ValueId x, ValueId y);
/// The same for one operand of a binary op; it has the output's shape and is summed to the operand's afterwards.
using BinaryDerivative = ValueId (*)(Graph&, ValueId dy, ValueId a, ValueId b, ValueId y);

std::vector<TensorType> infer_same(const InferContext& context) {
  context.require_dtype(0, DType::f32);
  return {f32(context.shape(0))};
}

/// One operation per element: a transcendental function counts as one too.
int64_t count_elements(const std::vector<TensorType>&, const std::vector<TensorType>& outputs, const Attributes&) {
  return outputs.front().elements();
}

OpDef unary(std::string name, std::string summary, UnaryDerivative derivative, Range range = {}) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.infer = infer_same;
  op.gradient = [derivative](GradContext& context) -> std::vector<ValueId> {
    return {derivative(context.graph, context.output_gradients[0], context.inputs[0], context.outputs[0])};
  };
  op.flops = count_elements;
  op.layout_rule = LayoutRule::elementwise;
  op.in_place = {{0, 0}};
  op.examples = {
      {"scalar", {f32({})}, {}, {range}},
      {"vector", {f32({7})}, {}, {range}},
      {"matrix", {f32({3, 5})}, {}, {range}},
      {"image", {f32({2, 3, 2, 2})}, {}, {range}},
  };
  return op;
}

OpDef with_attribute(OpDef op, AttributeSpec attribute, const std::vector<AttributeValue>& values) {
  std::vector<OpExample> examples;
  for (const AttributeValue& value : values)
    for (OpExample example : op.examples) {
      example.label += ", " + attribute.name + " " + to_string(value);
      example.attributes.set(attribute.name, value);
      examples.push_back(std::move(example));
    }
  op.examples = std::move(examples);
  op.attributes.push_back(std::move(attribute));
  return op;
}

OpDef binary(std::string name, std::string summary) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {"a", "b"};
  op.outputs = {"y"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::f32);
    context.require_dtype(1, DType::f32);
    return {f32(broadcast_operands(context, 0, 1))};
  };
  op.flops = count_elements;
  op.layout_rule = LayoutRule::elementwise;
  op.in_place = {{0, 0}, {0, 1}};
  return op;
}

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
                 std::vector<std::pair<Range, Range>> ranges) {
  OpDef op = binary(std::move(name), std::move(summary));
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

OpDef comparison(std::string name, std::string summary) {
  OpDef op = binary(std::move(name), std::move(summary));
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    if (context.dtype(0) != DType::i32) context.require_dtype(0, DType::f32);
    context.require_dtype(1, context.dtype(0));
    return {f32(broadcast_operands(context, 0, 1))};
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

std::vector<TensorType> infer_backward(const InferContext& context) {
  context.require_dtype(0, DType::f32);
  context.require_dtype(1, DType::f32);
  context.require_same_shape(0, 1);
  return {f32(context.shape(0))};
}

OpDef backward(std::string name, std::string summary, std::string second) {
  OpDef op = binary(std::move(name), std::move(summary));
  op.inputs = {"output_gradient", std::move(second)};
  op.outputs = {"input_gradient"};
  op.infer = infer_backward;
  op.examples = {
      {"scalar", {f32({}), f32({})}, {}, {}},
      {"vector", {f32({7}), f32({7})}, {}, {}},
      {"matrix", {f32({3, 5}), f32({3, 5})}, {}, {}},
      {"image", {f32({2, 3, 3, 2}), f32({2, 3, 3, 2})}, {}, {}},
  };
  return op;
}

void add_activations(OpRegistry& registry) {
  OpDef relu_op = unary("relu", "max(x, 0).", nullptr, kBothSigns);
  relu_op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    return {context.graph.add("relu_backward", {context.output_gradients[0], context.outputs[0]}, {},
                              gradient_name(context, "x"))};
  };
  registry.add(std::move(relu_op));
  const AttributeSpec approximate =
      attribute("approximate", false, "the tanh form instead of the exact one with the error function");
  OpDef gelu = with_attribute(
      unary("gelu", "x times the normal distribution function of x (Hendrycks and Gimpel 2016).", nullptr, {-2, 2}),
      approximate, {false, true});
  gelu.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Attributes attributes = attributes_of(context);
    return {context.graph.add("gelu_backward", {context.output_gradients[0], context.inputs[0]}, attributes,
                              gradient_name(context, "x"))};
  };
  registry.add(std::move(gelu));
  registry.add(unary("tanh", "Hyperbolic tangent.", [](Graph& g, ValueId dy, ValueId, ValueId y) {
    return multiply(g, dy, add_scalar(g, negate(g, square(g, y)), 1));
  }));
  registry.add(unary("sigmoid", "1 / (1 + exp(-x)).", [](Graph& g, ValueId dy, ValueId, ValueId y) {
    return multiply(g, dy, subtract(g, y, square(g, y)));
  }));
  registry.add(
      backward("relu_backward", "Gradient of relu: output_gradient where the output is above 0, else 0.", "output"));
  registry.add(with_attribute(
      backward("gelu_backward", "Gradient of gelu: output_gradient times its derivative at the input.", "input"),
      approximate, {false, true}));
}

void add_functions(OpRegistry& registry) {
  registry.add(unary("exp", "The exponential function.",
                     [](Graph& g, ValueId dy, ValueId, ValueId y) { return multiply(g, dy, y); }));
  registry.add(unary(
      "log", "Natural logarithm.", [](Graph& g, ValueId dy, ValueId x, ValueId) { return divide(g, dy, x); },
      kDivisor));
  registry.add(unary(
      "sqrt", "Square root.",
      [](Graph& g, ValueId dy, ValueId, ValueId y) { return multiply_scalar(g, divide(g, dy, y), 0.5); }, kDivisor));
  registry.add(unary("negate", "-x.", [](Graph& g, ValueId dy, ValueId, ValueId) { return negate(g, dy); }));
  registry.add(unary(
      "absolute", "|x|; the gradient at 0 is 0.",
      [](Graph& g, ValueId dy, ValueId x, ValueId) {
        const ValueId minus = negate(g, x);
        return multiply(g, dy, subtract(g, greater(g, x, minus), greater(g, minus, x)));
      },
      kBothSigns));
  registry.add(unary("square", "x * x.", [](Graph& g, ValueId dy, ValueId x, ValueId) {
    return multiply(g, dy, multiply_scalar(g, x, 2));
  }));
  registry.add(unary(
      "reciprocal", "1 / x.",
      [](Graph& g, ValueId dy, ValueId, ValueId y) { return negate(g, multiply(g, dy, square(g, y))); }, kDivisor));

  const AttributeSpec value = required_attribute("value", 0.0, "the number");
  registry.add(with_attribute(
      unary("add_scalar", "x + value.", [](Graph&, ValueId dy, ValueId, ValueId) { return dy; }), value, {0.75}));
  OpDef scale = with_attribute(unary("multiply_scalar", "x * value.", nullptr), value, {-1.5});
  scale.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const double factor = attributes_of(context).real("value");
    return {multiply_scalar(context.graph, context.output_gradients[0], factor)};
  };
  registry.add(std::move(scale));
}

void add_arithmetic(OpRegistry& registry) {
  const Range any{-1, 1};
  registry.add(arithmetic(
      "add", "a + b.", [](Graph&, ValueId dy, ValueId, ValueId, ValueId) { return dy; },
      [](Graph&, ValueId dy, ValueId, ValueId, ValueId) { return dy; }, {{any, any}}));
  registry.add(arithmetic(
      "subtract", "a - b.", [](Graph&, ValueId dy, ValueId, ValueId, ValueId) { return dy; },
      [](Graph& g, ValueId dy, ValueId, ValueId, ValueId) { return negate(g, dy); }, {{any, any}}));
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
  registry.add(comparison("equal", "1 where a equals b, else 0."));
  registry.add(comparison("greater", "1 where a is greater than b, else 0."));
}

}  // namespace

void add_elementwise_ops(OpRegistry& registry) {
  add_activations(registry);
  add_functions(registry);
  add_arithmetic(registry);
}

ValueId relu(Graph& graph, ValueId x, const std::string& name) { return graph.add("relu", {x}, {}, name); }
ValueId gelu(Graph& graph, ValueId x, bool approximate, const std::string& name) {
  return graph.add("gelu", {x}, {{"approximate", approximate}}, name);
}
ValueId tanh(Graph& graph, ValueId x, const std::string& name) { return graph.add("tanh", {x}, {}, name); }
ValueId sigmoid(Graph& graph, ValueId x, const std::string& name) { return graph.add("sigmoid", {x}, {}, name); }
ValueId exp(Graph& graph, ValueId x, const std::string& name) { return graph.add("exp", {x}, {}, name); }
ValueId log(Graph& graph, ValueId x, const std::string& name) { return graph.add("log", {x}, {}, name); }
ValueId sqrt(Graph& graph, ValueId x, const std::string& name) { return graph.add("sqrt", {x}, {}, name); }
ValueId negate(Graph& graph, ValueId x, const std::string& name) { return graph.add("negate", {x}, {}, name); }
ValueId absolute(Graph& graph, ValueId x, const std::string& name) { return graph.add("absolute", {x}, {}, name); }
ValueId square(Graph& graph, ValueId x, const std::string& name) { return graph.add("square", {x}, {}, name); }
ValueId reciprocal(Graph& graph, ValueId x, const std::string& name) { return graph.add("reciprocal", {x}, {}, name); }

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
ValueId add_scalar(Graph& graph, ValueId x, double value, const std::string& name) {
  return graph.add("add_scalar", {x}, {{"value", value}}, name);
}
ValueId multiply_scalar(Graph& graph, ValueId x, double value, const std::string& name) {
  return graph.add("multiply_scalar", {x}, {{"value", value}}, name);
}

}  // namespace weft::ops
