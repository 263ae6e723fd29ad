// Circular and hyperbolic functions and their inverses.
#include "weft/ops/define.h"
#include "weft/ops/elementwise.h"

namespace weft::ops {

namespace {

/// 1 - x^2 and x^2 - 1 as products: near 1 the square would round away what is left.
ValueId one_minus_square(Graph& graph, ValueId x) {
  return multiply(graph, add_scalar(graph, negate(graph, x), 1), add_scalar(graph, x, 1));
}
ValueId square_minus_one(Graph& graph, ValueId x) {
  return multiply(graph, add_scalar(graph, x, -1), add_scalar(graph, x, 1));
}
ValueId square_plus_one(Graph& graph, ValueId x) { return add_scalar(graph, square(graph, x), 1); }

ValueId arc_sine_slope(Graph& graph, ValueId dy, ValueId x) {
  return divide(graph, dy, sqrt(graph, one_minus_square(graph, x)));
}

void add_circular(OpRegistry& registry) {
  registry.add(unary("sin", "The sine of x radians.",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return multiply(g, dy, cos(g, x)); }, {-3, 3}));
  registry.add(unary("cos", "The cosine of x radians.",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return negate(g, multiply(g, dy, sin(g, x))); },
                     {-3, 3}));
  registry.add(unary("tan", "The tangent of x radians.",
                     [](Graph& g, ValueId dy, ValueId, ValueId y) { return multiply(g, dy, square_plus_one(g, y)); }));
  registry.add(unary("asin", "The angle from -pi/2 to pi/2 whose sine is x; NaN outside [-1, 1].",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return arc_sine_slope(g, dy, x); }, {-0.8, 0.8}));
  registry.add(unary("acos", "The angle from 0 to pi whose cosine is x; NaN outside [-1, 1].",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return negate(g, arc_sine_slope(g, dy, x)); },
                     {-0.8, 0.8}));
  registry.add(unary("atan", "The angle from -pi/2 to pi/2 whose tangent is x.",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return divide(g, dy, square_plus_one(g, x)); },
                     {-2, 2}));
}

void add_hyperbolic(OpRegistry& registry) {
  registry.add(unary("sinh", "The hyperbolic sine, (exp(x) - exp(-x)) / 2.",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return multiply(g, dy, cosh(g, x)); }, {-2, 2}));
  registry.add(unary("cosh", "The hyperbolic cosine, (exp(x) + exp(-x)) / 2.",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return multiply(g, dy, sinh(g, x)); }, {-2, 2}));
  registry.add(unary(
      "asinh", "The number whose hyperbolic sine is x.",
      [](Graph& g, ValueId dy, ValueId x, ValueId) { return divide(g, dy, sqrt(g, square_plus_one(g, x))); }, {-2, 2}));
  registry.add(
      unary("acosh", "The number from 0 on whose hyperbolic cosine is x; NaN below 1.",
            [](Graph& g, ValueId dy, ValueId x, ValueId) { return divide(g, dy, sqrt(g, square_minus_one(g, x))); },
            {1.3, 3}));
  registry.add(unary("atanh", "The number whose hyperbolic tangent is x; NaN outside [-1, 1].",
                     [](Graph& g, ValueId dy, ValueId x, ValueId) { return divide(g, dy, one_minus_square(g, x)); },
                     {-0.8, 0.8}));
}

}  // namespace

void add_trigonometric(OpRegistry& registry) {
  add_circular(registry);
  add_hyperbolic(registry);
}

ValueId sin(Graph& graph, ValueId x, const std::string& name) { return graph.add("sin", {x}, {}, name); }
ValueId cos(Graph& graph, ValueId x, const std::string& name) { return graph.add("cos", {x}, {}, name); }
ValueId tan(Graph& graph, ValueId x, const std::string& name) { return graph.add("tan", {x}, {}, name); }
ValueId asin(Graph& graph, ValueId x, const std::string& name) { return graph.add("asin", {x}, {}, name); }
ValueId acos(Graph& graph, ValueId x, const std::string& name) { return graph.add("acos", {x}, {}, name); }
ValueId atan(Graph& graph, ValueId x, const std::string& name) { return graph.add("atan", {x}, {}, name); }
ValueId sinh(Graph& graph, ValueId x, const std::string& name) { return graph.add("sinh", {x}, {}, name); }
ValueId cosh(Graph& graph, ValueId x, const std::string& name) { return graph.add("cosh", {x}, {}, name); }
ValueId asinh(Graph& graph, ValueId x, const std::string& name) { return graph.add("asinh", {x}, {}, name); }
ValueId acosh(Graph& graph, ValueId x, const std::string& name) { return graph.add("acosh", {x}, {}, name); }
ValueId atanh(Graph& graph, ValueId x, const std::string& name) { return graph.add("atanh", {x}, {}, name); }

}  // namespace weft::ops
