// Every fast kernel against the reference: over the examples and sizes derived from them, in every layout it accepts.
// ONEDNN_MAX_CPU_ISA=AVX2 or SSE41 in the environment runs the same loops on the kernels of smaller processors.
#include <cstdlib>
#include <map>
#include <set>

#include "tests/ops_registry/kernel_cases.h"
#include "weft/base/isa.h"

namespace weft::registry_tests {
namespace {

class FastKernel : public ::testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Ops, FastKernel, ::testing::ValuesIn(all_ops()), op_name);

// The values, and what a layout demands: zeros in the padding of blocks.
TEST_P(FastKernel, AgreesWithTheReference) {
  const OpDef& op = *GetParam();
  for (const int threads : {1, 2})
    for (const Question& question : questions_of(op, threads == 1 ? 0 : kDerivedSizes))
      for_each_subject(question, threads, /*with_reference=*/op.name == "reorder", [&](Subject& subject) {
        const auto outputs = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
        for (size_t i = 0; i < outputs.size(); ++i) {
          const Tensor plain = outputs[i].with_layout({});
          EXPECT_EQ(difference(plain, question.expected[i], op.kernel_tolerance, kSmallestScale), "") << "output " << i;
          EXPECT_TRUE(same_bits(outputs[i], plain.with_layout(outputs[i].layout()))) << "padding of output " << i;
        }
      });
}

TEST_P(FastKernel, RepeatsItselfBitwise) {
  for (const Question& question : questions_of(*GetParam(), 1))
    for_each_subject(question, 2, /*with_reference=*/true, [&](Subject& subject) {
      const auto first = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
      const auto second = run_on_garbage(*subject.kernel, subject.node, subject.inputs, {}, 2);
      for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(same_bits(first[i], second[i])) << "output " << i;
    });
}

TEST_P(FastKernel, GivesTheSameInPlace) {
  if (GetParam()->in_place.empty()) return;
  for (const Question& question : questions_of(*GetParam(), 1))
    for_each_subject(question, 2, /*with_reference=*/true, [&](Subject& subject) {
      const auto apart = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
      for (const Pairs& pairs : in_place_choices(subject.node)) {
        const auto shared = run_on_garbage(*subject.kernel, subject.node, subject.inputs, pairs);
        for (size_t i = 0; i < apart.size(); ++i)
          EXPECT_TRUE(same_bits(apart[i], shared[i]))
              << "output " << i << " with output " << pairs[0].first << " over input " << pairs[0].second;
      }
    });
}

// A NaN must reach the loss: a kernel may spread it further than the reference, but not turn it into a number.
TEST_P(FastKernel, DoesNotHideNaN) { expect_no_hidden_nan(questions_of(*GetParam(), 1)); }

/// Operands in which one NaN need not give any, by the meaning of the op.
const std::map<std::string, std::set<size_t>>& may_hide_nan() {
  static const std::map<std::string, std::set<size_t>> operands{
      // Comparisons, indices and counts.
      {"equal", {0, 1}},
      {"greater", {0, 1}},
      {"greater_equal", {0, 1}},
      {"argmax", {0}},
      {"count_correct", {0}},
      {"ctc_count_correct", {0}},
      // What is chosen, and what is left out.
      {"where", {0, 2}},
      {"fused_elementwise", {0, 1, 2}},
      {"slice", {0}},
      {"own_part", {0}},
      {"strided_slice", {0}},
      {"gather", {0}},
      {"gather_nd", {0}},
      {"scatter_elements", {0}},
      {"scatter_nd", {0, 2}},
      {"top_k", {0}},
      {"embedding", {0}},
      {"embedding_backward", {0}},  // of rows in other parts of a table
      {"dropout", {0}},
      {"resize", {0}},
      {"cumulative_sum", {0}},
      {"pow_scalar", {0}},  // to the power of 0
      {"gru_backward", {3}},
      // Labels that are ignored, and classes that no target names.
      {"cross_entropy", {0}},
      {"cross_entropy_backward", {0, 1}},
      {"ctc_loss", {0}},
      {"ctc_loss_backward", {1}},
      // Masks, and what they stop.
      {"relu_backward", {0, 1}},
      {"leaky_relu_backward", {1}},
      {"clip_backward", {0, 1}},
      {"max_pool2d_backward", {1}},
      {"batch_norm_backward", {0, 3, 6}},
      // Conditions: whether an update happens.
      {"sgd_update", {4}},
      {"product_sgd_update", {5}},
      {"adamw_update", {6}},
      {"blend_update", {4}},
      {"accumulate_update", {4}},      // which is about what follows
      {"tree_sum_update", {2, 3, 4}},  // which sums that begin anew write over
      {"loss_scale_update", {4}},
      {"running_average", {1}},      // which leaves out what is not finite
      {"renew", {0}},                // which is only written over
      {"cached_attention", {3, 4}},  // likewise, by the first tokens
      // Integers hold none: it becomes the least of the range.
      {"quantize_linear", {0, 1}},
      {"requantize", {1}},
      {"quantized_add", {2, 4, 6}},
      {"quantized_affine", {1, 2}},
      {"quantized_matmul", {4}},
      {"quantized_conv2d", {4}},
  };
  return operands;
}

// The other kernels are compared with the reference: it must not hide a NaN itself.
TEST_P(FastKernel, TheReferenceDoesNotHideNaN) {
  const OpDef& op = *GetParam();
  const auto found = may_hide_nan().find(op.name);
  std::set<size_t> hidden;
  for (const OpExample& example : op.examples) {
    const NodeSignature node = build_graph(op, example).signature();
    for (size_t operand = 0; operand < node.inputs.size(); ++operand) {
      const auto question = with_nan({node, draw_inputs(op, example, 3), {}}, operand);
      if (!question || std::any_of(question->expected.begin(), question->expected.end(), has_nan)) continue;
      hidden.insert(operand);
      EXPECT_TRUE(found != may_hide_nan().end() && found->second.contains(operand))
          << "example '" << example.label << "', input " << operand;
    }
  }
  if (found != may_hide_nan().end()) {
    EXPECT_EQ(hidden, found->second) << "the list says more than is true";
  }
}

// Batches of no samples, rows of no elements: served or declined, never a crash.
TEST_P(FastKernel, BearsEmptyOperands) {
  const OpDef& op = *GetParam();
  for (const OpExample& example : op.examples)
    for (const int64_t size : sizes_of(example)) {
      const auto empty = resized(op, example, {{size, 0}});
      if (!empty) continue;
      SCOPED_TRACE(fmt::format("example '{}' with 0 instead of {}", example.label, size));
      Question question{build_graph(op, *empty).signature(), draw_inputs(op, *empty, 3), {}};
      question.expected = evaluate_node(question.plain, question.inputs, reference_backend());
      for_each_subject(question, 2, /*with_reference=*/false, [&](Subject& subject) {
        const auto outputs = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
        for (size_t i = 0; i < outputs.size(); ++i) {
          const Tensor plain = outputs[i].with_layout({});
          if (!all_finite({&question.expected[i], 1})) continue;  // the mean of nothing
          EXPECT_EQ(difference(plain, question.expected[i], op.kernel_tolerance, kSmallestScale), "") << "output " << i;
          EXPECT_TRUE(same_bits(outputs[i], plain.with_layout(outputs[i].layout()))) << "padding of output " << i;
        }
      });
    }
}

TEST_P(FastKernel, ServesTheLayoutsThatItPrefers) {
  const CpuBackend& backend = backend_with(2);
  for (const OpExample& example : GetParam()->examples) {
    NodeSignature node = build_graph(*GetParam(), example).signature();
    const auto choice = backend.preferred_layouts(node);
    if (!choice) continue;
    ASSERT_EQ(choice->inputs.size(), node.inputs.size());
    ASSERT_EQ(choice->outputs.size(), node.outputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) node.inputs[i].layout = choice->inputs[i];
    for (size_t i = 0; i < node.outputs.size(); ++i) node.outputs[i].layout = choice->outputs[i];
    EXPECT_TRUE(backend.supports_layouts(node)) << describe(node);
    EXPECT_NE(backend.choose_kernel(node).kernel, "reference") << describe(node);
  }
}

/// Nodes that Winograd's kernels are for, too large for the loops above: tests/runtime has their values. Others: none.
std::vector<NodeSignature> large_convolutions(const OpDef& op) {
  const TensorType image{DType::f32, {4, 64, 16, 16}, {}}, weight{DType::f32, {64, 64, 3, 3}, {}};
  OpExample example{
      "large", {image, weight}, {{"padding", std::vector<int64_t>{1, 1}}, {"winograd", int64_t{1} << 30}}};
  if (op.name == "conv2d_backward_data") {
    example.attributes.set("input_size", std::vector<int64_t>{16, 16});
  } else if (op.name == "conv2d_backward_weights") {
    example.inputs = {image, image};
    example.attributes.set("kernel", std::vector<int64_t>{3, 3});
  } else if (op.name != "conv2d") {
    return {};
  }
  std::vector<NodeSignature> nodes{build_graph(op, example).signature()};
  if (backend_with(2).computes_fast(DType::bf16))
    for (const int64_t size : {3, 1}) {
      if (op.name == "conv2d_backward_weights") {
        example.attributes.set("kernel", std::vector<int64_t>{size, size});
        example.attributes.set("padding", std::vector<int64_t>{size / 2, size / 2});
        example.attributes.set("result_dtype", "f32");
      }
      if (const auto narrow = narrowed(op, example, DType::bf16)) nodes.push_back(build_graph(op, *narrow).signature());
    }
  return nodes;
}

/// What the kernels for tiles of weights are for. Others: none.
std::vector<NodeSignature> weights_in_tiles(const OpDef& op) {
  if (op.name != "cast" && op.name != "reorder") return {};
  const bool is_cast = op.name == "cast";
  const TensorType from{is_cast ? DType::f32 : DType::bf16, {32, 64, 3, 3}, {}};
  const OpExample example{"weights", {from}, is_cast ? Attributes{{"dtype", "bf16"}} : Attributes{}};
  NodeSignature node = build_graph(op, example).signature();
  node.inputs[0].layout = parse_layout(is_cast ? "ABcd16b16a" : "ABcd8a16b2a", 4);
  node.outputs[0].layout = parse_layout("ABcd8b16a2b", 4);
  return {node};
}

// A kernel that declines everything would pass the loops above unseen.
TEST_P(FastKernel, EveryCandidateServesSomeExample) {
  const bool has_all = multiplies_bf16() && !std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!has_all) GTEST_SKIP() << "a processor or a build without AVX512_BF16 may lack a kernel";
  const auto& candidates = backend_with(2).table().candidates(GetParam()->name);
  std::vector<int> served(candidates.size(), 0);
  std::vector<NodeSignature> plain = large_convolutions(*GetParam());
  for (const Question& question : questions_of(*GetParam(), kDerivedSizes)) plain.push_back(question.plain);
  for (const Question& question : questions_of(*GetParam(), 0, DType::f16)) plain.push_back(question.plain);
  std::vector<NodeSignature> nodes = weights_in_tiles(*GetParam());
  for (const NodeSignature& signature : plain)
    for (NodeSignature& node : layouts_of(signature, backend_with(2))) nodes.push_back(std::move(node));
  for (const NodeSignature& node : nodes)
    for (size_t i = 0; i < candidates.size(); ++i) {
      std::string why_not;
      served[i] += candidates[i].make(node, {2}, why_not) ? 1 : 0;
    }
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::string why_not;
    if (served[i] == 0) candidates[i].make(plain.front(), {2}, why_not);
    EXPECT_GT(served[i], 0) << candidates[i].family << ": " << why_not;
  }
}

}  // namespace
}  // namespace weft::registry_tests
