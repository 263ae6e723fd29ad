#include "ops_fixture.h"

namespace weft::ops {
namespace {

using Elementwise = OpsTest;

TEST_F(Elementwise, UnaryKeepsTheShape) {
  const ValueId x = input("x", {2, 3, 5});
  EXPECT_EQ(graph_.shape(relu(graph_, x)), Shape({2, 3, 5}));
  EXPECT_EQ(graph_.shape(gelu(graph_, x, true)), Shape({2, 3, 5}));
  EXPECT_EQ(graph_.shape(multiply_scalar(graph_, x, 2)), Shape({2, 3, 5}));
}

TEST_F(Elementwise, BinaryBroadcasts) {
  EXPECT_EQ(graph_.shape(add(graph_, input("a", {2, 1, 3}), input("b", {4, 1}))), Shape({2, 4, 3}));
}

TEST_F(Elementwise, ComparesIntegersIntoReals) {
  const ValueId a = input("a", {3}, DType::i32), b = input("b", {}, DType::i32);
  EXPECT_EQ(graph_.type(equal(graph_, a, b)), TensorType({DType::f32, {3}, {}}));
  EXPECT_EQ(graph_.type(greater(graph_, a, b)), TensorType({DType::f32, {3}, {}}));
}

TEST_F(Elementwise, ShapesThatDoNotBroadcast) {
  const ValueId a = input("image", {2, 3}), b = input("bias", {4});
  EXPECT_EQ(shape_error([&] { add(graph_, a, b, "sum"); }),
            "[add] 'sum': 'image' (2,3) and 'bias' (4) do not broadcast: aligned at the last axis, their dimensions "
            "must be equal or 1");
}

TEST_F(Elementwise, IntegerArithmetic) {
  const ValueId a = input("labels", {3}, DType::i32), b = input("b", {3});
  EXPECT_EQ(shape_error([&] { multiply(graph_, a, b, "product"); }),
            "[multiply] 'product': a wants f32, got 'labels' (3) of i32; add a cast");
}

TEST_F(Elementwise, IntegerFunction) {
  const ValueId x = input("tokens", {2, 7}, DType::i32);
  EXPECT_EQ(shape_error([&] { relu(graph_, x, "act"); }),
            "[relu] 'act': x wants f32, got 'tokens' (2,7) of i32; add a cast");
}

TEST_F(Elementwise, ComparisonOfMixedTypes) {
  const ValueId a = input("a", {3}, DType::i32), b = input("b", {3});
  EXPECT_EQ(shape_error([&] { equal(graph_, a, b, "same"); }),
            "[equal] 'same': b wants i32, got 'b' (3) of f32; add a cast");
}

TEST_F(Elementwise, ComparisonOfBytes) {
  const ValueId a = input("a", {3}, DType::u8);
  EXPECT_EQ(graph_.type(greater(graph_, a, a)), TensorType({DType::boolean, {3}, {}}));
}

TEST_F(Elementwise, ChoiceThatDoesNotBroadcast) {
  const ValueId mask = input("mask", {4}), a = input("a", {2, 1}), b = input("b", {3});
  EXPECT_EQ(shape_error([&] { where(graph_, mask, a, b, "chosen"); }),
            "[where] 'chosen': 'mask' (4) does not broadcast with (2,3), the shape of what it chooses from");
}

TEST_F(Elementwise, BoundsTheWrongWayRound) {
  const ValueId x = input("x", {3});
  EXPECT_EQ(shape_error([&] { clip(graph_, x, 6, 0, "act"); }),
            "[clip] 'act': low 6 is above high 0; give them in this order");
}

TEST_F(Elementwise, NegativeSlope) {
  const ValueId x = input("x", {3});
  EXPECT_EQ(shape_error([&] { leaky_relu(graph_, x, -0.1, "act"); }),
            "[leaky_relu] 'act': slope must be at least 0, got -0.1");
}

TEST_F(Elementwise, BackwardOfAnotherShape) {
  const ValueId dy = input("dy", {2, 3}), y = input("y", {3, 2});
  EXPECT_EQ(shape_error([&] {
              graph_.add("relu_backward", {dy, y}, {}, "back");
            }),
            "[relu_backward] 'back': 'dy' (2,3) and 'y' (3,2) must have the same shape");
}

TEST_F(Elementwise, ScalarOpWithoutItsValue) {
  const ValueId x = input("x", {3});
  try {
    graph_.add("add_scalar", {x}, {}, "shift");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "[add_scalar] 'shift': attribute 'value' is required: the number");
  }
}

/// What the checks over the registry will find, with shapes alone: every example infers, and every gradient rule gives
/// each operand a gradient of its own shape.
TEST_F(Elementwise, GradientsHaveTheShapesOfTheirOperands) {
  for (const auto& [name, op] : registry_.all())
    for (const OpExample& example : op.examples) {
      SCOPED_TRACE(name + ": " + example.label);
      Graph graph(registry_);
      std::vector<ValueId> inputs;
      for (const TensorType& type : example.inputs)
        inputs.push_back(graph.add_input(InputKind::batch, "input" + std::to_string(inputs.size()), type));
      const auto outputs = graph.add_node(name, inputs, example.attributes);
      ASSERT_FALSE(outputs.empty());
      if (op.flops) {
        std::vector<TensorType> output_types;
        for (const ValueId output : outputs) output_types.push_back(graph.type(output));
        EXPECT_GT(op.flops(example.inputs, output_types, graph.producer(outputs[0])->attributes), 0);
      }
      if (!op.gradient) continue;
      if (op.name == "max_pool2d" && !is_floating(example.inputs[0].dtype)) continue;  // integers have no gradient
      const bool is_scatter = name.starts_with("scatter_");
      if (is_scatter && example.attributes.has("reduction")) {  // of which sums alone have a gradient
        const std::string reduction = example.attributes.text("reduction");
        if (reduction != "none" && reduction != "add") continue;
      }
      GradContext context{graph, graph.value(outputs[0]).producer, inputs, outputs, {}};
      for (size_t i = 0; i < outputs.size(); ++i) {
        const bool is_kept_for_the_gradient = op.outputs[i] == "gates";
        context.output_gradients.push_back(
            is_kept_for_the_gradient
                ? ValueId{}
                : graph.add_input(InputKind::batch, "gradient" + std::to_string(i), graph.type(outputs[i])));
      }
      const auto gradients = op.gradient(context);
      ASSERT_EQ(gradients.size(), inputs.size());
      for (size_t index = 0; index < inputs.size(); ++index)
        if (gradients[index].valid()) {
          EXPECT_EQ(graph.type(gradients[index]), example.inputs[index]);
        }
    }
}

TEST_F(Elementwise, EveryOpHasExamplesAndHelp) {
  for (const auto& [name, op] : registry_.all()) {
    EXPECT_GE(op.examples.size(), 3u) << name;
    EXPECT_FALSE(op.summary.empty()) << name;
    for (const AttributeSpec& attribute : op.attributes) EXPECT_FALSE(attribute.help.empty()) << name;
  }
}

}  // namespace
}  // namespace weft::ops
