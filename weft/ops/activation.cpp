// Activation functions. Where the derivative can be told from the output it is, as of relu: the input, which nothing
// else may want, need not be kept.
#include <fmt/format.h>

#include "weft/ops/define.h"
#include "weft/ops/elementwise.h"

namespace weft::ops {

namespace {

void require_not_negative(const InferContext& context, const char* attribute) {
  const double value = context.attributes.real(attribute);
  if (!(value >= 0)) context.fail(fmt::format("{} must be at least 0, got {}", attribute, value));
}
void require_slope(const InferContext& context) { require_not_negative(context, "slope"); }
void require_alpha(const InferContext& context) { require_not_negative(context, "alpha"); }
void require_bounds(const InferContext& context) {
  const double low = context.attributes.real("low"), high = context.attributes.real("high");
  if (!(low <= high)) context.fail(fmt::format("low {} is above high {}; give them in this order", low, high));
}

void add_rectifiers(OpRegistry& registry) {
  registry.add(unary_with_backward("relu", "max(x, 0).", "relu_backward", Keeps::output, kBothSigns));
  registry.add(
      backward("relu_backward", "Gradient of relu: output_gradient where the output is above 0, else 0.", "output"));

  const std::vector<AttributeSpec> slope{attribute("slope", 0.01, "factor of what is below 0; at least 0")};
  const std::vector<Attributes> slopes{{{"slope", 0.2}}, {{"slope", 0.0}}};
  registry.add(
      with_check(with_attributes(unary_with_backward("leaky_relu", "x where it is above 0, else slope times x.",
                                                     "leaky_relu_backward", Keeps::output, kBothSigns),
                                 slope, slopes),
                 require_slope));
  registry.add(with_check(with_attributes(backward("leaky_relu_backward",
                                                   "Gradient of leaky_relu: output_gradient, times slope where the "
                                                   "output is not above 0.",
                                                   "output"),
                                          slope, slopes),
                          require_slope));

  const std::vector<AttributeSpec> alpha{attribute("alpha", 1.0, "minus the limit far below 0; at least 0")};
  const std::vector<Attributes> alphas{{{"alpha", 1.0}}, {{"alpha", 0.5}}};
  registry.add(
      with_check(with_attributes(
                     unary_with_backward("elu", "x where it is above 0, else alpha (exp(x) - 1) (Clevert et al. 2016).",
                                         "elu_backward", Keeps::output, kBothSigns),
                     alpha, alphas),
                 require_alpha));
  registry.add(with_check(
      with_attributes(
          backward("elu_backward",
                   "Gradient of elu: output_gradient, times output + alpha where the output is not above 0.", "output"),
          alpha, alphas),
      require_alpha));
}

void add_bounded(OpRegistry& registry) {
  const std::vector<AttributeSpec> bounds{required_attribute("low", 0.0, "the least result"),
                                          required_attribute("high", 6.0, "the greatest result")};
  // No midpoint of the examples' spread values lies within a difference's step of these.
  const std::vector<Attributes> inside{{{"low", -0.45}, {"high", 0.65}}, {{"low", 0.0}, {"high", 6.0}}};
  registry.add(with_check(
      with_attributes(
          unary_with_backward("clip", "The nearest number from low to high; at the bounds the gradient is 0.",
                              "clip_backward", Keeps::output, kBothSigns),
          bounds, inside),
      require_bounds));
  registry.add(with_check(
      with_attributes(
          backward("clip_backward",
                   "Gradient of clip: output_gradient where the output lies between the bounds, else 0.", "output"),
          bounds, inside),
      require_bounds));

  // The kinks are at -3 and 3.
  registry.add(unary_with_backward("hardswish", "x min(max(x + 3, 0), 6) / 6 (Howard et al. 2019).",
                                   "hardswish_backward", Keeps::input, {-6.7, 7.9, true}));
  OpDef hardswish_backward = backward(
      "hardswish_backward", "Gradient of hardswish: output_gradient times its derivative at the input.", "input");
  for (OpExample& example : hardswish_backward.examples) example.ranges = {{-1, 1}, {-6.7, 7.9, true}};
  registry.add(std::move(hardswish_backward));
}

void add_smooth(OpRegistry& registry) {
  const std::vector<AttributeSpec> approximate{
      attribute("approximate", false, "the tanh form instead of the exact one with the error function")};
  const std::vector<Attributes> forms{{{"approximate", false}}, {{"approximate", true}}};
  registry.add(with_attributes(
      unary_with_backward("gelu", "x times the normal distribution function of x (Hendrycks and Gimpel 2016).",
                          "gelu_backward", Keeps::input, {-2, 2}),
      approximate, forms));
  registry.add(with_attributes(
      backward("gelu_backward", "Gradient of gelu: output_gradient times its derivative at the input.", "input"),
      approximate, forms));
  // What the pass keep_slopes puts into a step; models and gradient rules have no use for it.
  OpDef slope = unary("gelu_slope", "Derivative of gelu at x; made by the pass keep_slopes only.", nullptr, {-2, 2});
  slope.gradient = nullptr;
  registry.add(with_attributes(std::move(slope), approximate, forms));
  registry.add(unary_with_backward("silu", "x sigmoid(x), also known as swish (Ramachandran et al. 2017).",
                                   "silu_backward", Keeps::input, {-4, 4}));
  registry.add(
      backward("silu_backward", "Gradient of silu: output_gradient times its derivative at the input.", "input"));
  registry.add(unary("tanh", "Hyperbolic tangent.", [](Graph& g, ValueId dy, ValueId, ValueId y) {
    return multiply(g, dy, add_scalar(g, negate(g, square(g, y)), 1));
  }));
  registry.add(unary("sigmoid", "1 / (1 + exp(-x)).", [](Graph& g, ValueId dy, ValueId, ValueId y) {
    return multiply(g, dy, subtract(g, y, square(g, y)));
  }));
  registry.add(unary("softplus", "log(1 + exp(x)), without overflow.",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return multiply(g, dy, sigmoid(g, x)); }, {-4, 4}));
}

}  // namespace

void add_activations(OpRegistry& registry) {
  add_rectifiers(registry);
  add_bounded(registry);
  add_smooth(registry);
}

ValueId relu(Graph& graph, ValueId x, const std::string& name) { return graph.add("relu", {x}, {}, name); }
ValueId leaky_relu(Graph& graph, ValueId x, double slope, const std::string& name) {
  return graph.add("leaky_relu", {x}, {{"slope", slope}}, name);
}
ValueId elu(Graph& graph, ValueId x, double alpha, const std::string& name) {
  return graph.add("elu", {x}, {{"alpha", alpha}}, name);
}
ValueId clip(Graph& graph, ValueId x, double low, double high, const std::string& name) {
  return graph.add("clip", {x}, {{"low", low}, {"high", high}}, name);
}
ValueId relu6(Graph& graph, ValueId x, const std::string& name) {
  return clip(graph, x, 0, 6, name.empty() ? "relu6" : name);
}
ValueId hardsigmoid(Graph& graph, ValueId x, const std::string& name) {
  // Only the result is read backward: the gradient of clip looks at its output.
  const ValueId line = add_scalar(graph, multiply_scalar(graph, x, 1.0 / 6), 0.5);
  return clip(graph, line, 0, 1, name.empty() ? "hardsigmoid" : name);
}
ValueId hardswish(Graph& graph, ValueId x, const std::string& name) { return graph.add("hardswish", {x}, {}, name); }
ValueId gelu(Graph& graph, ValueId x, bool approximate, const std::string& name) {
  return graph.add("gelu", {x}, {{"approximate", approximate}}, name);
}
ValueId silu(Graph& graph, ValueId x, const std::string& name) { return graph.add("silu", {x}, {}, name); }
ValueId tanh(Graph& graph, ValueId x, const std::string& name) { return graph.add("tanh", {x}, {}, name); }
ValueId sigmoid(Graph& graph, ValueId x, const std::string& name) { return graph.add("sigmoid", {x}, {}, name); }
ValueId softplus(Graph& graph, ValueId x, const std::string& name) { return graph.add("softplus", {x}, {}, name); }

}  // namespace weft::ops
