// A graph of every example prints and parses back to the same text.
#include "weft/graph/text.h"

#include "tests/ops_registry/example_cases.h"

namespace weft::registry_tests {
namespace {

class TextRoundTrip : public ::testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Ops, TextRoundTrip, ::testing::ValuesIn(all_ops()), op_name);

TEST_P(TextRoundTrip, ParsesBackToTheSameText) {
  for (const OpExample& example : GetParam()->examples) {
    SCOPED_TRACE(example.label);
    ExampleGraph built = build_graph(*GetParam(), example);
    const ValueId first = built.outputs[0];
    if (built.graph.shape(first).rank() == 4) built.graph.set_layout(first, parse_layout("aBcd16b", 4));
    for (size_t i = 0; i < built.outputs.size(); ++i)
      built.graph.add_output("output" + std::to_string(i), built.outputs[i]);
    const std::string text = print_graph(built.graph);
    EXPECT_NE(text.find(" = " + GetParam()->name + "("), std::string::npos) << text;
    const Graph parsed = parse_graph(text, registry());
    EXPECT_EQ(print_graph(parsed), text);
    ASSERT_EQ(parsed.nodes().size(), 1u);
    EXPECT_EQ(parsed.nodes()[0].attributes, built.graph.nodes()[0].attributes);
    for (size_t i = 0; i < built.graph.values().size(); ++i)
      EXPECT_EQ(parsed.values()[i].type, built.graph.values()[i].type) << text;
  }
}

}  // namespace
}  // namespace weft::registry_tests
