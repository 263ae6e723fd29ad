// The kernels of integers give the reference's bits: on every example of their ops, with the instruction sets of every
// processor up to this one, with one thread and two, for batches of 1 and 32, in both kinds of requantization.
#include <cstdlib>
#include <set>

#include "tests/ops_registry/kernel_cases.h"
#include "weft/base/isa.h"

namespace weft::registry_tests {
namespace {

constexpr const char* kOps[] = {"integer_matmul",   "quantized_matmul", "dequantized_matmul", "integer_conv2d",
                                "quantized_conv2d", "quantize_linear",  "dequantize_linear",  "requantize",
                                "quantized_add",    "quantized_affine", "max_pool2d"};
constexpr const char* kInstructionSets[] = {"SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_VNNI", "ALL"};

/// ONEDNN_MAX_CPU_ISA while it lives.
class InstructionLimit {
 public:
  explicit InstructionLimit(const char* isa) {
    const char* before = std::getenv(kVariable);
    if (before != nullptr) before_ = before;
    setenv(kVariable, isa, 1);
  }
  ~InstructionLimit() {
    if (before_)
      setenv(kVariable, before_->c_str(), 1);
    else
      unsetenv(kVariable);
  }
  InstructionLimit(const InstructionLimit&) = delete;
  InstructionLimit& operator=(const InstructionLimit&) = delete;

 private:
  static constexpr const char* kVariable = "ONEDNN_MAX_CPU_ISA";
  std::optional<std::string> before_;
};

/// The example with so many images or rows: the leading size of the first operand, and of those that share it.
OpExample of_batch(const OpDef& op, const OpExample& example, int64_t batch) {
  OpExample other = example;
  const std::string& name = op.name;
  if (other.inputs[0].shape.rank() == 0) return other;
  const bool is_stack = name.ends_with("matmul") && other.inputs[1].shape.rank() > 2;
  const bool by_first_axis = other.attributes.has("axis") && other.attributes.integer("axis") == 0;
  if (by_first_axis) return other;  // channels
  other.inputs[0].shape[0] = batch;
  if (is_stack && other.inputs[1].shape[0] != 1) other.inputs[1].shape[0] = batch;
  if (name == "quantized_add") other.inputs[1].shape[0] = batch;
  return other;
}

std::vector<OpExample> in_both_kinds(const OpDef& op, const OpExample& example) {
  const auto has_rounding = [](const AttributeSpec& spec) { return spec.name == "rounding"; };
  if (std::none_of(op.attributes.begin(), op.attributes.end(), has_rounding)) return {example};
  std::vector<OpExample> both(2, example);
  both[0].attributes.set("rounding", std::string("float"));
  both[1].attributes.set("rounding", std::string("fixed"));
  return both;
}

/// Of weights that are signed bytes, none above 64 in magnitude: kernels may multiply them in another way.
bool make_narrow(const OpDef& op, std::vector<Tensor>& inputs) {
  if (!(op.name.ends_with("matmul") || op.name.ends_with("conv2d")) || inputs[1].dtype() != DType::i8) return false;
  auto* const bytes = static_cast<int8_t*>(inputs[1].data());
  for (int64_t at = 0; at < inputs[1].elements(); ++at)
    bytes[at] = static_cast<int8_t>(at % 7 == 0 ? -64 : at % 5 == 0 ? 64 : bytes[at] / 2);
  return true;
}

std::vector<Question> questions_of_batch(const OpDef& op, int64_t batch) {
  std::vector<Question> questions;
  for (const OpExample& base : op.examples)
    for (const OpExample& example : in_both_kinds(op, of_batch(op, base, batch))) {
      Question question{build_graph(op, example).signature(), draw_inputs(op, example, 11), {}};
      question.expected = evaluate_node(question.plain, question.inputs, reference_backend());
      Question narrow{question.plain, draw_inputs(op, example, 12), {}};
      questions.push_back(std::move(question));
      if (!make_narrow(op, narrow.inputs)) continue;
      narrow.expected = evaluate_node(narrow.plain, narrow.inputs, reference_backend());
      questions.push_back(std::move(narrow));
    }
  return questions;
}

/// By every kernel but the reference, in every layout that it takes.
void expect_same_bits(const CpuBackend& backend, const Question& question, const char* isa,
                      std::set<std::string>& served) {
  for (const NodeSignature& node : layouts_of(question.plain, backend))
    for (const KernelCandidate& candidate : backend.table().candidates(node.op->name)) {
      std::string why_not;
      const auto kernel =
          candidate.family == "reference" ? nullptr : candidate.make(node, {backend.threads()}, why_not);
      if (!kernel) continue;
      served.insert(kernel->name());
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < question.inputs.size(); ++i)
        inputs.push_back(question.inputs[i].with_layout(node.inputs[i].layout));
      const auto outputs = run_on_garbage(*kernel, node, inputs);
      EXPECT_TRUE(same_bits(outputs[0].with_layout({}), question.expected[0]))
          << kernel->name() << " with " << isa << ", " << backend.threads() << " threads: " << describe(node);
    }
}

/// Those that this processor has.
std::vector<std::string> kernels_of(const std::string& op) {
  if (op == "max_pool2d") return {"native:byte_pool"};
  const bool is_product = op.ends_with("matmul"), is_convolution = op.ends_with("conv2d");
  if (!is_product && !is_convolution) return {"native:" + op};
  const std::string name = is_product ? "native:integer_matmul:" : "native:integer_convolution:";
  std::vector<std::string> names{name + "baseline"};
  if (detect_isa() != Isa::baseline) names.push_back(name + "avx2");
  if (detect_isa() == Isa::avx512) names.push_back(name + "avx512");
  if (multiplies_bytes()) names.push_back(name + "vnni");
  if (is_convolution) names.push_back("native:integer_depthwise");
  return names;
}

class IntegerKernel : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ops, IntegerKernel, ::testing::ValuesIn(kOps),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(IntegerKernel, GivesTheBitsOfTheReferenceOnEveryInstructionSet) {
  const OpDef& op = registry().get(GetParam());
  std::set<std::string> served;
  for (const int64_t batch : {1, 32}) {
    const std::vector<Question> questions = questions_of_batch(op, batch);
    for (const char* isa : kInstructionSets) {
      const InstructionLimit limit(isa);
      for (const int threads : {1, 2}) {
        const CpuBackend backend(threads);
        for (const Question& question : questions) expect_same_bits(backend, question, isa, served);
      }
    }
  }
  for (const std::string& name : kernels_of(op.name))
    EXPECT_TRUE(served.contains(name)) << name << " has served no example of " << op.name;
}

/// 150 columns. Those from the 64th to the 127th are all of 7 bits: kernels may multiply them in another way.
TEST(IntegerColumns, NarrowOnesBesideOthersGiveTheReferencesBits) {
  constexpr int64_t kColumns = 150;
  for (const char* name : {"integer_matmul", "quantized_matmul", "dequantized_matmul"}) {
    const OpDef& op = registry().get(name);
    int asked = 0;
    for (OpExample example : op.examples) {
      if (example.inputs[1].shape.rank() != 2) continue;
      const int64_t columns = example.inputs[1].shape[1];
      for (size_t operand = 1; operand < example.inputs.size(); ++operand) {
        Shape& shape = example.inputs[operand].shape;
        if (shape.rank() > 0 && shape[shape.rank() - 1] == columns) shape[shape.rank() - 1] = kColumns;
      }
      Question question{build_graph(op, example).signature(), draw_inputs(op, example, 13), {}};
      auto* const bytes = static_cast<int8_t*>(question.inputs[1].data());
      for (int64_t at = 0; at < question.inputs[1].elements(); ++at)
        if (at % kColumns / 64 == 1)
          bytes[at] = static_cast<int8_t>(at % 7 == 0 ? -64 : at % 5 == 0 ? 64 : bytes[at] / 2);
      question.expected = evaluate_node(question.plain, question.inputs, reference_backend());
      for (const char* isa : kInstructionSets) {
        const InstructionLimit limit(isa);
        std::set<std::string> served;
        expect_same_bits(CpuBackend(2), question, isa, served);
        EXPECT_FALSE(served.empty()) << describe(question.plain);
      }
      ++asked;
    }
    EXPECT_GT(asked, 0) << name;
  }
}

TEST(IntegerFactors, ThatAreHugeOrNoNumbersGiveTheReferencesBits) {
  const OpDef& op = registry().get("quantized_matmul");
  for (OpExample example : op.examples) {
    if (example.label.find("around 0") == std::string::npos) continue;
    example.inputs[4].shape = Shape{example.inputs[1].shape[1]};
    Question question{build_graph(op, example).signature(), draw_inputs(op, example, 3), {}};
    const std::vector<float> factors{NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 1e6f, -1e6f, 0, -0.0f, 1e-38f};
    for (int64_t at = 0; at < question.inputs[4].elements(); ++at)
      question.inputs[4].data_as<float>()[at] = factors[static_cast<size_t>(at) % factors.size()];
    question.expected = evaluate_node(question.plain, question.inputs, reference_backend());
    std::set<std::string> served;
    expect_same_bits(CpuBackend(1), question, "all", served);
    EXPECT_FALSE(served.empty());
  }
}

TEST(IntegerInstructions, AreLimitedByTheVariable) {
  const OpDef& op = registry().get("integer_matmul");
  const NodeSignature node = build_graph(op, op.examples.front()).signature();
  const auto name_with = [&](const char* isa) {
    const InstructionLimit limit(isa);
    return CpuBackend(1).make_kernel(node)->name();
  };
  EXPECT_EQ(name_with("SSE41"), "native:integer_matmul:baseline");
  const InstructionLimit all("ALL");
  if (detect_isa() != Isa::baseline) {
    EXPECT_EQ(name_with("AVX2"), "native:integer_matmul:avx2");
  }
  if (detect_isa() == Isa::avx512) {
    EXPECT_EQ(name_with("AVX512_CORE"), "native:integer_matmul:avx512");
  }
  if (multiplies_bytes()) {
    EXPECT_EQ(name_with("AVX512_CORE_VNNI"), "native:integer_matmul:vnni");
  }
}

}  // namespace
}  // namespace weft::registry_tests
