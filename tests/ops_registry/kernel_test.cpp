// Every fast kernel against the reference: over the examples and sizes derived from them, in every layout it accepts.
// ONEDNN_MAX_CPU_ISA=AVX2 or SSE41 in the environment runs the same loops on the kernels of smaller processors.
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "tests/ops_registry/example_cases.h"

namespace weft::registry_tests {
namespace {

constexpr size_t kDerivedSizes = 4;  // per example
// Where all outputs cancel to nothing (a softmax over one class), what is left is rounding of the inputs, which are
// about 1: with a tolerance of 1e-4 this allows 1e-7, an f32's last bit.
constexpr double kSmallestScale = 1e-3;

const CpuBackend& backend_with(int threads) {
  static const CpuBackend one(1), two(2);
  return threads == 1 ? one : two;
}

/// The signature under every combination of layouts worth trying; kernels decline what they do not serve.
std::vector<NodeSignature> layouts_of(const NodeSignature& plain, const CpuBackend& backend) {
  std::vector<NodeSignature> all{plain};
  const auto keep = [&](const NodeSignature& node) {
    for (const NodeSignature& other : all)
      if (other.inputs == node.inputs && other.outputs == node.outputs) return;
    all.push_back(node);
  };
  if (const auto choice = backend.preferred_layouts(plain)) {
    NodeSignature wanted = plain;
    for (size_t i = 0; i < wanted.inputs.size(); ++i) wanted.inputs[i].layout = choice->inputs[i];
    for (size_t i = 0; i < wanted.outputs.size(); ++i) wanted.outputs[i].layout = choice->outputs[i];
    keep(wanted);
  }
  const std::vector<Layout> layouts{channels_last(4), parse_layout("aBcd16b", 4), parse_layout("aBcd8b", 4)};
  const auto give = [](TensorType& type, const Layout& layout) {
    if (type.shape.rank() == 4) type.layout = layout;
  };
  for (const Layout& layout : layouts) {
    NodeSignature images = plain, full = plain;
    for (TensorType& type : images.inputs) give(type, layout);
    for (TensorType& type : images.outputs) give(type, layout);
    for (TensorType& type : full.inputs)
      if (type.shape == plain.outputs[0].shape) give(type, layout);
    for (TensorType& type : full.outputs)
      if (type.shape == plain.outputs[0].shape) give(type, layout);
    keep(images);
    keep(full);
    if (plain.op->name != "reorder") continue;
    for (const Layout& from : layouts) {  // any to any
      NodeSignature pair = images;
      give(pair.inputs[0], from);
      keep(pair);
    }
    NodeSignature packing = images, unpacking = images;
    packing.inputs[0].layout = {};
    unpacking.outputs[0].layout = {};
    keep(packing);
    keep(unpacking);
  }
  return all;
}

std::string describe(const NodeSignature& node) {
  std::string text;
  for (const TensorType& type : node.inputs) text += to_string(type) + " ";
  text += "->";
  for (const TensorType& type : node.outputs) text += " " + to_string(type);
  return text;
}

/// What stands in memory that the arena reuses: NaN in every floating type.
void fill_with_garbage(void* data, int64_t bytes) { std::memset(data, 0xff, static_cast<size_t>(bytes)); }

using Pairs = std::vector<std::pair<int, int>>;

/// Runs the kernel on garbage, `times` times at the same addresses. `aliases`: outputs (first) written over inputs
/// (second), for one time.
std::vector<Tensor> run_on_garbage(Kernel& kernel, const NodeSignature& node, const std::vector<Tensor>& inputs,
                                   const Pairs& aliases = {}, int times = 1) {
  std::vector<Tensor> outputs(node.outputs.begin(), node.outputs.end());
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (const Tensor& tensor : inputs) sources.push_back(tensor.data());
  for (const auto& [output, input] : aliases) {
    outputs[static_cast<size_t>(output)] = inputs[static_cast<size_t>(input)].clone();
    sources[static_cast<size_t>(input)] = outputs[static_cast<size_t>(output)].data();
  }
  for (Tensor& tensor : outputs) targets.push_back(tensor.data());
  const auto workspace = allocate_aligned(kernel.workspace_bytes());
  for (int run = 0; run < times; ++run) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool aliased = std::any_of(aliases.begin(), aliases.end(),
                                       [&](const auto& pair) { return pair.first == static_cast<int>(i); });
      if (!aliased) fill_with_garbage(outputs[i].data(), outputs[i].bytes());
    }
    fill_with_garbage(workspace.get(), kernel.workspace_bytes());
    kernel.run({sources, targets, workspace.get()});
  }
  return outputs;
}

/// Each pair of the op that fits the node alone, then as many of them together as use no operand twice.
std::vector<Pairs> in_place_choices(const NodeSignature& node) {
  std::vector<Pairs> choices;
  Pairs together;
  for (const auto& pair : node.op->in_place) {
    const auto output = static_cast<size_t>(pair.first), input = static_cast<size_t>(pair.second);
    if (output >= node.outputs.size() || input >= node.inputs.size()) continue;
    if (node.outputs[output] != node.inputs[input]) continue;
    choices.push_back({pair});
    const bool used = std::any_of(together.begin(), together.end(), [&](const std::pair<int, int>& other) {
      return other.first == pair.first || other.second == pair.second;
    });
    if (!used) together.push_back(pair);
  }
  if (together.size() > 1) choices.push_back(together);
  return choices;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

struct Subject {
  NodeSignature node;
  std::vector<Tensor> inputs;  // in the node's layouts
  std::unique_ptr<Kernel> kernel;
  std::string family;
};

/// One example or another of its sizes, with the reference's answer.
struct Question {
  NodeSignature plain;
  std::vector<Tensor> inputs, expected;
};

/// The examples of an op, and `derived` other sizes of each.
std::vector<Question> questions_of(const OpDef& op, size_t derived) {
  std::vector<Question> questions;
  for (const OpExample& base : op.examples) {
    std::vector<OpExample> sizes = derive_examples(op, base, hash_name(op.name + base.label), derived);
    sizes.insert(sizes.begin(), base);
    for (const OpExample& example : sizes) {
      Question question{build_graph(op, example).signature(), draw_inputs(op, example, 3), {}};
      question.expected = evaluate_node(question.plain, question.inputs, reference_backend());
      // Where the ranges make no sense for another size there is nothing to compare.
      if (all_finite(question.expected)) questions.push_back(std::move(question));
    }
  }
  return questions;
}

/// Calls visit(subject) for each candidate that serves the question in some layout.
template <typename Visit>
void for_each_subject(const Question& question, int threads, bool with_reference, Visit&& visit) {
  const CpuBackend& backend = backend_with(threads);
  for (const NodeSignature& node : layouts_of(question.plain, backend))
    for (const KernelCandidate& candidate : backend.table().candidates(node.op->name)) {
      if (candidate.family == "reference" && !with_reference) continue;
      std::string why_not;
      Subject subject{node, {}, candidate.make(node, {threads}, why_not), candidate.family};
      if (!subject.kernel) {
        EXPECT_FALSE(why_not.empty()) << candidate.family << " declines without a reason: " << describe(node);
        continue;
      }
      for (size_t i = 0; i < question.inputs.size(); ++i)
        subject.inputs.push_back(question.inputs[i].with_layout(node.inputs[i].layout));
      SCOPED_TRACE(fmt::format("{} with {} threads: {}", subject.kernel->name(), threads, describe(node)));
      visit(subject);
    }
}

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

/// The question with a NaN in the middle of an operand; nullopt where that has no floats.
std::optional<Question> with_nan(Question question, size_t operand) {
  Tensor& tensor = question.inputs[operand];
  if (tensor.dtype() != DType::f32 || tensor.elements() == 0) return std::nullopt;
  tensor = tensor.clone();
  tensor.data_as<float>()[tensor.elements() / 2] = NAN;
  if (question.plain.op->name ==
      "max_pool2d_backward") {  // its third operand is what the forward op makes of the second
    if (operand == 2) return std::nullopt;
    const NodeSignature& node = question.plain;
    const auto forward = build_graph(registry().get("max_pool2d"), {node.inputs[1]}, node.attributes);
    question.inputs[2] = evaluate_node(forward.signature(), {question.inputs[1]}, reference_backend())[0];
  }
  question.expected = evaluate_node(question.plain, question.inputs, reference_backend());
  return question;
}

bool has_nan(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.elements(); ++i)
    if (std::isnan(element(tensor, i))) return true;
  return false;
}

/// "" where `actual` has a NaN wherever `expected` has one and is near it elsewhere, or has another NaN.
std::string hidden_nan(const Tensor& actual, const Tensor& expected, double tolerance) {
  double scale = kSmallestScale;
  for (int64_t i = 0; i < expected.elements(); ++i)
    if (std::isfinite(element(expected, i))) scale = std::max(scale, std::fabs(element(expected, i)));
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double got = element(actual, i), wanted = element(expected, i);
    if (std::isnan(got) || got == wanted || std::fabs(got - wanted) <= tolerance * scale) continue;
    return fmt::format("element {} of {}: got {}, wanted {}", i, to_string(expected.type()), got, wanted);
  }
  return "";
}

// A NaN must reach the loss: a kernel may spread it further than the reference, but not turn it into a number.
TEST_P(FastKernel, DoesNotHideNaN) {
  const OpDef& op = *GetParam();
  for (const Question& numbers : questions_of(op, 1))
    for (size_t operand = 0; operand < numbers.inputs.size(); ++operand) {
      const auto question = with_nan(numbers, operand);
      if (!question) continue;
      for_each_subject(*question, 2, /*with_reference=*/false, [&](Subject& subject) {
        const auto outputs = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
        for (size_t i = 0; i < outputs.size(); ++i)
          EXPECT_EQ(hidden_nan(outputs[i].with_layout({}), question->expected[i], op.kernel_tolerance), "")
              << "output " << i << ", NaN in input " << operand;
      });
    }
}

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
      {"gather", {0}},
      {"embedding", {0}},
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

// A kernel that declines everything would pass the loops above unseen.
TEST_P(FastKernel, EveryCandidateServesSomeExample) {
  if (std::getenv("ONEDNN_MAX_CPU_ISA")) GTEST_SKIP() << "a smaller processor may lack a kernel";
  const auto& candidates = backend_with(2).table().candidates(GetParam()->name);
  std::vector<int> served(candidates.size(), 0);
  for (const Question& question : questions_of(*GetParam(), kDerivedSizes))
    for (const NodeSignature& node : layouts_of(question.plain, backend_with(2)))
      for (size_t i = 0; i < candidates.size(); ++i) {
        std::string why_not;
        served[i] += candidates[i].make(node, {2}, why_not) ? 1 : 0;
      }
  for (size_t i = 0; i < candidates.size(); ++i) EXPECT_GT(served[i], 0) << candidates[i].family;
}

}  // namespace
}  // namespace weft::registry_tests
