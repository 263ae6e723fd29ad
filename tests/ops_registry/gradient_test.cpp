// The gradient of every op against central finite differences of its reference kernel.
// The loss is the sum of one output times random weights, summed in double: the storage of f32 is the only error.
#include "tests/ops_registry/example_cases.h"
#include "weft/autodiff/autodiff.h"

namespace weft::registry_tests {
namespace {

double weighted_sum(const Tensor& values, const Tensor& weights) {
  double sum = 0;
  for (int64_t i = 0; i < values.elements(); ++i) sum += element(values, i) * element(weights, i);
  return sum;
}

/// Half the distance of the two points of a difference: small against the range, large against f32's rounding; where
/// values are spread because the function has kinks between them, a part of their distance.
double step_for(const OpExample::Range& range, int64_t elements) {
  const double width = range.high - range.low;
  const double smooth = 5e-3 * width;
  return range.spread ? std::min(smooth, width / static_cast<double>(elements) / 4) : smooth;
}

Tensor numeric_gradient(Kernel& kernel, const NodeSignature& node, std::vector<Tensor> inputs, size_t input,
                        size_t output, const Tensor& weights, double step) {
  inputs[input] = inputs[input].clone();
  Tensor gradient(DType::f32, inputs[input].shape());
  float* values = inputs[input].data_as<float>();
  for (int64_t i = 0; i < gradient.elements(); ++i) {
    const float middle = values[i];
    const float above = middle + static_cast<float>(step), below = middle - static_cast<float>(step);
    values[i] = above;
    const double high = weighted_sum(run_kernel(kernel, node, inputs)[output], weights);
    values[i] = below;
    const double low = weighted_sum(run_kernel(kernel, node, inputs)[output], weights);
    values[i] = middle;
    gradient.data_as<float>()[i] =
        static_cast<float>((high - low) / (static_cast<double>(above) - static_cast<double>(below)));
  }
  return gradient;
}

/// Which inputs the rule gives a gradient for, when only `output` matters.
std::vector<bool> gradient_exists(const ExampleGraph& built, size_t output, ValueId output_gradient) {
  Graph scratch = built.graph;
  GradContext context{scratch, built.node, built.inputs, built.outputs,
                      std::vector<ValueId>(built.outputs.size(), ValueId{})};
  context.output_gradients[output] = output_gradient;
  std::vector<bool> exists;
  for (const ValueId id : built.graph.node(built.node).op->gradient(context)) exists.push_back(id.valid());
  return exists;
}

class Gradient : public ::testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Ops, Gradient, ::testing::ValuesIn(differentiable_ops()), op_name);

/// Compares the gradients of one output; false where the rule refuses to differentiate it.
bool check_output(const OpDef& op, const OpExample& example, size_t output) {
  ExampleGraph built = build_graph(op, example);
  const NodeSignature node = built.signature();
  const TensorType result = node.outputs[output];
  const ValueId weight_value = built.graph.add_input(InputKind::batch, "weights", result);
  std::vector<bool> exists;
  std::vector<size_t> floating;
  std::vector<ValueId> targets;
  try {
    exists = gradient_exists(built, output, weight_value);
    for (size_t i = 0; i < built.inputs.size(); ++i)
      if (is_floating(node.inputs[i].dtype)) {
        floating.push_back(i);
        targets.push_back(built.inputs[i]);
      }
    const ValueId weighted = built.graph.add("multiply", {built.outputs[output], weight_value});
    const ValueId loss = built.graph.add("reduce_sum", {weighted});
    const std::vector<ValueId> gradients = add_gradients(built.graph, loss, targets);
    for (size_t k = 0; k < gradients.size(); ++k)
      built.graph.add_output("gradient" + std::to_string(floating[k]), gradients[k]);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    return false;
  }

  const std::vector<Tensor> inputs = draw_inputs(op, example, 7);
  const Tensor weights = draw_tensor(result, {}, 11);
  std::map<std::string, Tensor> feed{{"weights", weights}};
  for (size_t i = 0; i < inputs.size(); ++i) feed[input_name(i)] = inputs[i];
  const auto computed = evaluate_graph(built.graph, feed, reference_backend());
  const auto kernel = reference_backend().make_kernel(node);
  for (const size_t i : floating) {
    SCOPED_TRACE("input " + std::to_string(i) + " " + to_string(node.inputs[i]));
    const double step = step_for(range_of(example, i), inputs[i].elements());
    const Tensor numeric = numeric_gradient(*kernel, node, inputs, i, output, weights, step);
    const Tensor& analytic = computed.at("gradient" + std::to_string(i));
    // A rule may leave out a gradient only where it is zero.
    EXPECT_EQ(difference(analytic, numeric, op.gradient_tolerance, 1e-2), "")
        << (exists[i] ? "" : "the rule gives this input no gradient");
  }
  return true;
}

TEST_P(Gradient, MatchesFiniteDifferences) {
  const OpDef& op = *GetParam();
  for (const OpExample& example : op.examples) {
    const NodeSignature node = build_graph(op, example).signature();
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      if (!is_floating(node.outputs[output].dtype)) continue;
      SCOPED_TRACE("example '" + example.label + "', output " + std::to_string(output));
      const bool differentiated = check_output(op, example, output);
      // A rule may refuse a by-product (the mean of a batch norm), by an error, but not ignore it.
      EXPECT_TRUE(differentiated || output > 0);
    }
  }
}

}  // namespace
}  // namespace weft::registry_tests
