// Every op says what it is: `weft ops` and all other loops over the registry rely on it.
#include "tests/ops_registry/example_cases.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/verify.h"
#include "weft/machines/roofline.h"

namespace weft::registry_tests {
namespace {

/// Operands of an op whose names are these: any number where the last one ends in "...".
size_t most_operands(const std::vector<std::string>& names) {
  return !names.empty() && names.back().ends_with("...") ? 1000 : names.size();
}

class OpDocumentation : public ::testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Ops, OpDocumentation, ::testing::ValuesIn(all_ops()), op_name);

TEST_P(OpDocumentation, IsComplete) {
  const OpDef& op = *GetParam();
  EXPECT_FALSE(op.summary.empty());
  EXPECT_EQ(op.summary.find('\n'), std::string::npos) << "one sentence";
  EXPECT_FALSE(op.outputs.empty());
  EXPECT_FALSE(op.examples.empty());
  for (const std::string& name : op.inputs) EXPECT_FALSE(name.empty());
  for (const std::string& name : op.outputs) EXPECT_FALSE(name.empty());
  for (const AttributeSpec& spec : op.attributes) {
    EXPECT_FALSE(spec.name.empty());
    EXPECT_FALSE(spec.help.empty()) << spec.name;
  }
  for (const OpExample& example : op.examples) EXPECT_FALSE(example.label.empty());
  for (const auto& [output, input] : op.in_place) {
    EXPECT_LT(static_cast<size_t>(output), most_operands(op.outputs));
    EXPECT_LT(static_cast<size_t>(input), most_operands(op.inputs));
  }
}

TEST_P(OpDocumentation, StatesItsCost) {
  EXPECT_TRUE(machines::states_cost(*GetParam())) << "no flops, and the class '" << GetParam()->work << "' computes";
}

TEST_P(OpDocumentation, EveryExampleIsAValidGraph) {
  for (const OpExample& example : GetParam()->examples) {
    SCOPED_TRACE(example.label);
    const ExampleGraph built = build_graph(*GetParam(), example);
    EXPECT_LE(built.outputs.size(), most_operands(GetParam()->outputs));
    EXPECT_NO_THROW(verify(built.graph, "example"));
    const NodeSignature node = built.signature();
    if (GetParam()->flops) {
      EXPECT_GE(GetParam()->flops(node.inputs, node.outputs, node.attributes), 0);
    }
  }
}

TEST_P(OpDocumentation, TheReferenceKernelStandsLastAndServesEveryExample) {
  const CpuBackend backend(1);
  const auto& candidates = backend.table().candidates(GetParam()->name);
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.back().family, "reference");
  for (const OpExample& example : GetParam()->examples) {
    SCOPED_TRACE(example.label);
    const NodeSignature node = build_graph(*GetParam(), example).signature();
    const auto outputs = evaluate_node(node, draw_inputs(*GetParam(), example, 1), reference_backend());
    EXPECT_TRUE(all_finite(outputs));
  }
}

}  // namespace
}  // namespace weft::registry_tests
