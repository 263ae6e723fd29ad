// The gradient of every op against central finite differences of its reference kernel.
#include "tests/ops_registry/example_cases.h"

namespace weft::registry_tests {
namespace {

class Gradient : public ::testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Ops, Gradient, ::testing::ValuesIn(differentiable_ops()), op_name);

TEST_P(Gradient, MatchesFiniteDifferences) {
  const OpDef& op = *GetParam();
  for (const OpExample& example : op.examples) {
    const NodeSignature node = build_graph(op, example).signature();
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      if (!is_floating(node.outputs[output].dtype)) continue;
      SCOPED_TRACE("example '" + example.label + "', output " + std::to_string(output));
      const GradientCheck check =
          check_gradient(registry(), reference_backend(), op, example, draw_inputs(op, example, 7), output);
      // A rule may refuse a by-product (the mean of a batch norm), by an error, but not ignore it.
      EXPECT_TRUE(check.differentiated || output > 0);
      for (const std::string& problem : check.problems) EXPECT_FALSE(check.differentiated) << problem;
    }
  }
}

}  // namespace
}  // namespace weft::registry_tests
