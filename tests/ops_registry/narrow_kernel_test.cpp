// Kernels on operands of bf16 and f16, against the reference, which computes in f32 and rounds once.
#include "tests/ops_registry/kernel_cases.h"
#include "weft/autodiff/autodiff.h"

namespace weft::registry_tests {
namespace {

constexpr DType kNarrow[] = {DType::bf16, DType::f16};

class NarrowKernel : public ::testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Ops, NarrowKernel, ::testing::ValuesIn(all_ops()), op_name);

TEST_P(NarrowKernel, IsAcceptedByWhatMayComputeInIt) {
  const OpDef& op = *GetParam();
  if (op.precision == PrecisionRule::full) return;
  for (const OpExample& example : op.examples) {
    const bool has_floats = std::any_of(example.inputs.begin(), example.inputs.end(),
                                        [](const TensorType& type) { return type.dtype == DType::f32; });
    for (const DType dtype : kNarrow) {
      if (!has_floats) continue;
      const auto narrow = narrowed(op, example, dtype);
      ASSERT_TRUE(narrow) << example.label;
      const DType result = build_graph(op, *narrow).signature().outputs[0].dtype;
      EXPECT_EQ(result, op.work == ops::work::kRecurrent ? DType::f32 : dtype) << example.label;
    }
  }
}

TEST_P(NarrowKernel, AgreesWithTheReference) {
  const OpDef& op = *GetParam();
  for (const DType dtype : kNarrow)
    for (const Question& question : questions_of(op, 2, dtype))
      for_each_subject(question, 2, /*with_reference=*/false, [&](Subject& subject) {
        const auto outputs = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
        for (size_t i = 0; i < outputs.size(); ++i) {
          const Tensor plain = outputs[i].with_layout({});
          EXPECT_EQ(difference(plain, question.expected[i], tolerance_of(subject.node, plain.dtype()), kSmallestScale),
                    "")
              << "output " << i;
          EXPECT_TRUE(same_bits(outputs[i], plain.with_layout(outputs[i].layout()))) << "padding of output " << i;
        }
      });
}

TEST_P(NarrowKernel, GivesTheSameInPlace) {
  for (const Question& question : questions_of(*GetParam(), 0, DType::bf16))
    for_each_subject(question, 2, /*with_reference=*/true, [&](Subject& subject) {
      const auto apart = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
      for (const Pairs& pairs : in_place_choices(subject.node)) {
        const auto shared = run_on_garbage(*subject.kernel, subject.node, subject.inputs, pairs);
        for (size_t i = 0; i < apart.size(); ++i) EXPECT_TRUE(same_bits(apart[i], shared[i])) << "output " << i;
      }
    });
}

TEST_P(NarrowKernel, DoesNotHideNaN) { expect_no_hidden_nan(questions_of(*GetParam(), 0, DType::bf16)); }

// Sums of many numbers: in f32, where that is asked for, with the digits that rounding would take.
TEST_P(NarrowKernel, KeepsTheDigitsOfAResultInF32) {
  const OpDef& op = *GetParam();
  const auto has = [&](const AttributeSpec& spec) { return spec.name == "result_dtype"; };
  if (std::none_of(op.attributes.begin(), op.attributes.end(), has)) return;
  for (const OpExample& example : op.examples) {
    OpExample narrow = narrowed(op, example, DType::bf16).value();
    narrow.attributes.set("result_dtype", std::string("f32"));
    Question question{build_graph(op, narrow).signature(), draw_inputs(op, narrow, 3), {}};
    ASSERT_EQ(question.plain.outputs[0].dtype, DType::f32);
    question.expected = evaluate_node(question.plain, question.inputs, reference_backend());
    for_each_subject(question, 2, /*with_reference=*/false, [&](Subject& subject) {
      const auto outputs = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
      EXPECT_EQ(difference(outputs[0].with_layout({}), question.expected[0], op.kernel_tolerance, kSmallestScale), "");
    });

    // The gradients come back in the operands' type.
    ExampleGraph built = build_graph(op, narrow);
    const ValueId loss = built.graph.add("reduce_sum", {built.outputs[0]});
    for (const ValueId gradient : add_gradients(built.graph, loss, built.inputs))
      EXPECT_EQ(built.graph.type(gradient).dtype, DType::bf16);
  }
}

}  // namespace
}  // namespace weft::registry_tests
