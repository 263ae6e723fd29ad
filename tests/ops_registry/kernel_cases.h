// What the tests of kernels share: questions with the reference's answers, the layouts in which candidates may serve
// them, and runs on memory full of garbage.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "tests/ops_registry/example_cases.h"
#include "weft/ops/define.h"

namespace weft::registry_tests {

inline constexpr size_t kDerivedSizes = 4;  // per example
// Where all outputs cancel to nothing (a softmax over one class), what is left is rounding of the inputs, which are
// about 1: with a tolerance of 1e-4 this allows 1e-7, an f32's last bit.
inline constexpr double kSmallestScale = 1e-3;

inline const CpuBackend& backend_with(int threads) {
  static const CpuBackend one(1), two(2);
  return threads == 1 ? one : two;
}

/// The signature under every combination of layouts worth trying; kernels decline what they do not serve.
inline std::vector<NodeSignature> layouts_of(const NodeSignature& plain, const CpuBackend& backend) {
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

inline std::string describe(const NodeSignature& node) {
  std::string text;
  for (const TensorType& type : node.inputs) text += to_string(type) + " ";
  text += "->";
  for (const TensorType& type : node.outputs) text += " " + to_string(type);
  return text;
}

/// What stands in memory that the arena reuses: NaN in every floating type.
inline void fill_with_garbage(void* data, int64_t bytes) { std::memset(data, 0xff, static_cast<size_t>(bytes)); }

using Pairs = std::vector<std::pair<int, int>>;

/// Runs the kernel on garbage, `times` times at the same addresses. `aliases`: outputs (first) written over inputs
/// (second), for one time.
inline std::vector<Tensor> run_on_garbage(Kernel& kernel, const NodeSignature& node, const std::vector<Tensor>& inputs,
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
inline std::vector<Pairs> in_place_choices(const NodeSignature& node) {
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

inline bool same_bits(const Tensor& a, const Tensor& b) {
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

/// The example with floating operands of this type, but for those that stay f32; nullopt where the op does not accept
/// it or nothing changes.
inline std::optional<OpExample> narrowed(const OpDef& op, OpExample example, DType dtype) {
  bool changed = false;
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const bool stays = std::count(op.f32_inputs.begin(), op.f32_inputs.end(), static_cast<int>(i)) > 0;
    if (stays || example.inputs[i].dtype != DType::f32) continue;
    example.inputs[i].dtype = dtype;
    changed = true;
  }
  try {
    build_graph(op, example);
  } catch (const Error&) {
    return std::nullopt;
  }
  return changed ? std::optional(std::move(example)) : std::nullopt;
}

/// The examples of an op, where it accepts them in this type, and `derived` other sizes of each.
inline std::vector<Question> questions_of(const OpDef& op, size_t derived, DType dtype = DType::f32) {
  std::vector<Question> questions;
  for (OpExample base : op.examples) {
    if (dtype != DType::f32) {
      auto narrow = narrowed(op, base, dtype);
      if (!narrow) continue;
      base = *std::move(narrow);
    }
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
inline void for_each_subject(const Question& question, int threads, bool with_reference, Visit&& visit) {
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

/// The question with a NaN in the middle of an operand; nullopt where that has no floats.
inline std::optional<Question> with_nan(Question question, size_t operand) {
  Tensor& tensor = question.inputs[operand];
  if (!is_floating(tensor.dtype()) || tensor.elements() == 0) return std::nullopt;
  tensor = tensor.clone();
  reference::store_element(tensor.dtype(), tensor.data(), tensor.elements() / 2, NAN);
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

inline bool has_nan(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.elements(); ++i)
    if (std::isnan(element(tensor, i))) return true;
  return false;
}

/// "" where `actual` has a NaN wherever `expected` has one and is near it elsewhere, or has another NaN.
inline std::string hidden_nan(const Tensor& actual, const Tensor& expected, double tolerance) {
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

/// Two results that were rounded once, each from about the same number, differ by a unit in the last place: 2^-7 of a
/// number with the 8 bits of bf16, 2^-10 with the 11 of f16. What was not rounded is as near as in f32.
inline double tolerance_of(const OpDef& op, DType dtype) {
  return std::max(op.kernel_tolerance, dtype == DType::bf16 ? 0x1p-7 : dtype == DType::f16 ? 0x1p-10 : 0.0);
}
/// The same of an output of a node. Recurrences with weights of a narrower type may round what each of their steps
/// multiplies, though their results are f32.
inline double tolerance_of(const NodeSignature& node, DType output) {
  const bool rounds = node.op->work == ops::work::kRecurrent && node.inputs[1].dtype != DType::f32;
  return std::max(tolerance_of(*node.op, output), rounds ? 0x1p-5 : 0.0);
}

/// With a NaN in each operand of each question in turn, every kernel but the reference gives the NaN that it gives.
inline void expect_no_hidden_nan(const std::vector<Question>& questions) {
  for (const Question& numbers : questions)
    for (size_t operand = 0; operand < numbers.inputs.size(); ++operand) {
      const auto question = with_nan(numbers, operand);
      if (!question) continue;
      for_each_subject(*question, 2, /*with_reference=*/false, [&](Subject& subject) {
        const auto outputs = run_on_garbage(*subject.kernel, subject.node, subject.inputs);
        for (size_t i = 0; i < outputs.size(); ++i)
          EXPECT_EQ(hidden_nan(outputs[i].with_layout({}), question->expected[i],
                               tolerance_of(subject.node, outputs[i].dtype())),
                    "")
              << "output " << i << ", NaN in input " << operand;
      });
    }
}

}  // namespace weft::registry_tests
