// What elementwise ops share, and the functions of one tensor that are no activations. One table row per op.
#include "weft/ops/elementwise.h"

#include <numbers>

#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {

namespace {

std::vector<TensorType> infer_same(const InferContext& context) {
  const DType dtype = require_real(context, 0);
  return {typed(dtype, context.shape(0))};
}

std::vector<TensorType> infer_backward(const InferContext& context) {
  const DType dtype = require_real(context, 0);
  context.require_dtype(1, dtype);
  context.require_same_shape(0, 1);
  return {typed(dtype, context.shape(0))};
}

}  // namespace

int64_t count_elements(const std::vector<TensorType>&, const std::vector<TensorType>& outputs, const Attributes&) {
  return outputs.front().elements();
}

OpDef unary(std::string name, std::string summary, UnaryDerivative derivative, OpExample::Range range) {
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
  op.of_split = {OfSplit::elements};
  op.dimensions = elementwise_dimensions;
  op.precision = PrecisionRule::follow;
  op.in_place = {{0, 0}};
  op.examples = {
      {"scalar", {f32({})}, {}, {range}},
      {"vector", {f32({7})}, {}, {range}},
      {"matrix", {f32({3, 5})}, {}, {range}},
      {"image", {f32({2, 3, 2, 2})}, {}, {range}},
  };
  return op;
}

OpDef unary_with_backward(std::string name, std::string summary, std::string backward_op, Keeps keeps,
                          OpExample::Range range) {
  OpDef op = unary(std::move(name), std::move(summary), nullptr, range);
  op.gradient = [backward_op = std::move(backward_op), keeps](GradContext& context) -> std::vector<ValueId> {
    const ValueId kept = keeps == Keeps::output ? context.outputs[0] : context.inputs[0];
    return {context.graph.add(backward_op, {context.output_gradients[0], kept}, attributes_of(context),
                              gradient_name(context, "x"))};
  };
  return op;
}

OpDef binary(std::string name, std::string summary) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {"a", "b"};
  op.outputs = {"y"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const DType dtype = require_real(context, 0);
    context.require_dtype(1, dtype);
    return {typed(dtype, broadcast_operands(context, 0, 1))};
  };
  op.flops = count_elements;
  op.layout_rule = LayoutRule::elementwise;
  op.of_split = {OfSplit::elements};
  op.dimensions = elementwise_dimensions;
  op.precision = PrecisionRule::follow;
  op.in_place = {{0, 0}, {0, 1}};
  return op;
}

OpDef on_numbers(OpDef op) {
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const DType dtype = context.require_number(0);
    if (context.input_count() == 1) return {typed(dtype, context.shape(0))};
    if (is_floating(context.dtype(1)) && !is_floating(dtype)) context.require_dtype(0, context.dtype(1));
    context.require_dtype(1, dtype);
    return {typed(dtype, broadcast_operands(context, 0, 1))};
  };
  return op;
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

OpDef with_attributes(OpDef op, const std::vector<AttributeSpec>& specs, const std::vector<Attributes>& calls) {
  std::vector<OpExample> examples;
  for (const Attributes& call : calls)
    for (OpExample example : op.examples) {
      for (const auto& [name, value] : call.values()) {
        example.label += ", " + name + " " + to_string(value);
        example.attributes.set(name, value);
      }
      examples.push_back(std::move(example));
    }
  op.examples = std::move(examples);
  op.attributes.insert(op.attributes.end(), specs.begin(), specs.end());
  return op;
}

OpDef with_check(OpDef op, void (*check)(const InferContext&)) {
  op.infer = [check, infer = std::move(op.infer)](const InferContext& context) {
    check(context);
    return infer(context);
  };
  return op;
}

namespace {

void add_functions(OpRegistry& registry) {
  registry.add(unary("exp", "The exponential function.",
                     [](Graph& g, ValueId dy, ValueId, ValueId y) { return multiply(g, dy, y); }));
  registry.add(unary(
      "log", "Natural logarithm.", [](Graph& g, ValueId dy, ValueId x, ValueId) { return divide(g, dy, x); },
      kDivisor));
  registry.add(unary(
      "sqrt", "Square root.",
      [](Graph& g, ValueId dy, ValueId, ValueId y) { return multiply_scalar(g, divide(g, dy, y), 0.5); }, kDivisor));
  registry.add(
      along(on_numbers(unary("negate", "-x.", [](Graph& g, ValueId dy, ValueId, ValueId) { return negate(g, dy); })),
            linear_dimensions));
  registry.add(on_numbers(unary(
      "absolute", "|x|; the gradient at 0 is 0.",
      [](Graph& g, ValueId dy, ValueId x, ValueId) {
        const ValueId minus = negate(g, x);
        return multiply(g, dy, subtract(g, greater(g, x, minus), greater(g, minus, x)));
      },
      kBothSigns)));
  registry.add(on_numbers(unary("square", "x * x.", [](Graph& g, ValueId dy, ValueId x, ValueId) {
    return multiply(g, dy, multiply_scalar(g, x, 2));
  })));
  registry.add(unary(
      "reciprocal", "1 / x.",
      [](Graph& g, ValueId dy, ValueId, ValueId y) { return negate(g, multiply(g, dy, square(g, y))); }, kDivisor));

  registry.add(unary("erf", "The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) {
                       const ValueId density = exp(g, negate(g, square(g, x)));
                       return multiply(g, dy, multiply_scalar(g, density, 2 * std::numbers::inv_sqrtpi));
                     },
                     {-2, 2}));
  // Constant between the jumps: nothing flows back. No midpoint of the examples' values is near an integer.
  const UnaryDerivative none = [](Graph&, ValueId, ValueId, ValueId) { return ValueId{}; };
  registry.add(on_numbers(unary("sign", "1 above 0, -1 below, 0 at 0.", none, kBothSigns)));
  registry.add(unary("floor", "The largest integer that is not above x.", none, {0.1, 0.9}));
  registry.add(unary("ceil", "The smallest integer that is not below x.", none, {0.1, 0.9}));
  registry.add(unary("round", "The nearest integer; half-way between two, the even one.", none, {0.6, 1.4}));

  const std::vector<AttributeSpec> value{required_attribute("value", 0.0, "the number")};
  const std::vector<Attributes> three_quarters{{{"value", 0.75}}};
  registry.add(
      with_attributes(unary("add_scalar", "x + value.", [](Graph&, ValueId dy, ValueId, ValueId) { return dy; }), value,
                      three_quarters));
  OpDef scale = along(unary("multiply_scalar", "x * value.", nullptr), linear_dimensions);
  scale.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const double factor = attributes_of(context).real("value");
    return {multiply_scalar(context.graph, context.output_gradients[0], factor)};
  };
  registry.add(with_attributes(std::move(scale), value, {{{"value", -1.5}}}));
  OpDef power = unary("pow_scalar", "x to the power of value.", nullptr, kDivisor);
  power.gradient = [](GradContext& context) -> std::vector<ValueId> {
    Graph& graph = context.graph;
    const double exponent = attributes_of(context).real("value");
    if (exponent == 0) return {ValueId{}};
    const ValueId slope = multiply_scalar(graph, pow_scalar(graph, context.inputs[0], exponent - 1), exponent);
    return {multiply(graph, context.output_gradients[0], slope)};
  };
  registry.add(with_attributes(std::move(power), value, {{{"value", 3.0}}, {{"value", -0.25}}, {{"value", 0.0}}}));
}

}  // namespace

void add_elementwise_ops(OpRegistry& registry) {
  add_activations(registry);
  add_functions(registry);
  add_arithmetic(registry);
  add_trigonometric(registry);
}

ValueId exp(Graph& graph, ValueId x, const std::string& name) { return graph.add("exp", {x}, {}, name); }
ValueId log(Graph& graph, ValueId x, const std::string& name) { return graph.add("log", {x}, {}, name); }
ValueId sqrt(Graph& graph, ValueId x, const std::string& name) { return graph.add("sqrt", {x}, {}, name); }
ValueId negate(Graph& graph, ValueId x, const std::string& name) { return graph.add("negate", {x}, {}, name); }
ValueId absolute(Graph& graph, ValueId x, const std::string& name) { return graph.add("absolute", {x}, {}, name); }
ValueId square(Graph& graph, ValueId x, const std::string& name) { return graph.add("square", {x}, {}, name); }
ValueId reciprocal(Graph& graph, ValueId x, const std::string& name) { return graph.add("reciprocal", {x}, {}, name); }
ValueId erf(Graph& graph, ValueId x, const std::string& name) { return graph.add("erf", {x}, {}, name); }
ValueId sign(Graph& graph, ValueId x, const std::string& name) { return graph.add("sign", {x}, {}, name); }
ValueId floor(Graph& graph, ValueId x, const std::string& name) { return graph.add("floor", {x}, {}, name); }
ValueId ceil(Graph& graph, ValueId x, const std::string& name) { return graph.add("ceil", {x}, {}, name); }
ValueId round(Graph& graph, ValueId x, const std::string& name) { return graph.add("round", {x}, {}, name); }
ValueId pow_scalar(Graph& graph, ValueId x, double exponent, const std::string& name) {
  if (exponent == 2) return square(graph, x, name);
  if (exponent == 0.5) return sqrt(graph, x, name);
  if (exponent == -1) return reciprocal(graph, x, name);
  return graph.add("pow_scalar", {x}, {{"value", exponent}}, name);
}
ValueId add_scalar(Graph& graph, ValueId x, double value, const std::string& name) {
  return graph.add("add_scalar", {x}, {{"value", value}}, name);
}
ValueId multiply_scalar(Graph& graph, ValueId x, double value, const std::string& name) {
  return graph.add("multiply_scalar", {x}, {{"value", value}}, name);
}

}  // namespace weft::ops
