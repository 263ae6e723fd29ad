// The op fused_elementwise and the text form of its program.
#include "weft/ops/fused.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

/// Whether an instruction's result is rounded once, so that every kernel gives the same bits.
enum class Rounding { exact, approximate };

struct Row {
  ScalarOp op;
  std::string_view name;  // of the op and of the instruction
  int operands;
  Rounding rounding;
  std::array<std::string_view, 2> literals{};  // attributes of the op that follow the slots
  bool is_tanh_form = false;                   // of the op above, marked by the literal 1 after the slots
};

using enum Rounding;
constexpr Row kRows[] = {
    {ScalarOp::relu, "relu", 1, exact},
    {ScalarOp::leaky_relu, "leaky_relu", 1, exact, {"slope"}},
    {ScalarOp::elu, "elu", 1, approximate, {"alpha"}},
    {ScalarOp::clip, "clip", 1, exact, {"low", "high"}},
    {ScalarOp::hardswish, "hardswish", 1, approximate},
    {ScalarOp::gelu, "gelu", 1, approximate},
    {ScalarOp::gelu_tanh, "gelu", 1, approximate, {}, true},
    {ScalarOp::gelu_slope, "gelu_slope", 1, approximate},
    {ScalarOp::gelu_tanh_slope, "gelu_slope", 1, approximate, {}, true},
    {ScalarOp::silu, "silu", 1, approximate},
    {ScalarOp::tanh, "tanh", 1, approximate},
    {ScalarOp::sigmoid, "sigmoid", 1, approximate},
    {ScalarOp::softplus, "softplus", 1, approximate},
    {ScalarOp::exp, "exp", 1, approximate},
    {ScalarOp::log, "log", 1, approximate},
    {ScalarOp::sqrt, "sqrt", 1, exact},
    {ScalarOp::negate, "negate", 1, exact},
    {ScalarOp::absolute, "absolute", 1, exact},
    {ScalarOp::square, "square", 1, exact},
    {ScalarOp::reciprocal, "reciprocal", 1, exact},
    {ScalarOp::erf, "erf", 1, approximate},
    {ScalarOp::sign, "sign", 1, exact},
    {ScalarOp::floor, "floor", 1, exact},
    {ScalarOp::ceil, "ceil", 1, exact},
    {ScalarOp::round, "round", 1, exact},
    {ScalarOp::sin, "sin", 1, approximate},
    {ScalarOp::cos, "cos", 1, approximate},
    {ScalarOp::tan, "tan", 1, approximate},
    {ScalarOp::asin, "asin", 1, approximate},
    {ScalarOp::acos, "acos", 1, approximate},
    {ScalarOp::atan, "atan", 1, approximate},
    {ScalarOp::sinh, "sinh", 1, approximate},
    {ScalarOp::cosh, "cosh", 1, approximate},
    {ScalarOp::asinh, "asinh", 1, approximate},
    {ScalarOp::acosh, "acosh", 1, approximate},
    {ScalarOp::atanh, "atanh", 1, approximate},
    {ScalarOp::add, "add", 2, exact},
    {ScalarOp::subtract, "subtract", 2, exact},
    {ScalarOp::multiply, "multiply", 2, exact},
    {ScalarOp::divide, "divide", 2, exact},
    {ScalarOp::pow, "pow", 2, approximate},
    {ScalarOp::maximum, "maximum", 2, exact},
    {ScalarOp::minimum, "minimum", 2, exact},
    {ScalarOp::equal, "equal", 2, exact},
    {ScalarOp::greater, "greater", 2, exact},
    {ScalarOp::greater_equal, "greater_equal", 2, exact},
    {ScalarOp::where, "where", 3, exact},
    {ScalarOp::relu_backward, "relu_backward", 2, exact},
    {ScalarOp::leaky_relu_backward, "leaky_relu_backward", 2, exact, {"slope"}},
    {ScalarOp::elu_backward, "elu_backward", 2, approximate, {"alpha"}},
    {ScalarOp::clip_backward, "clip_backward", 2, exact, {"low", "high"}},
    {ScalarOp::hardswish_backward, "hardswish_backward", 2, approximate},
    {ScalarOp::gelu_backward, "gelu_backward", 2, approximate},
    {ScalarOp::gelu_tanh_backward, "gelu_backward", 2, approximate, {}, true},
    {ScalarOp::silu_backward, "silu_backward", 2, approximate},
    {ScalarOp::add_scalar, "add_scalar", 1, exact, {"value"}},
    {ScalarOp::multiply_scalar, "multiply_scalar", 1, exact, {"value"}},
    {ScalarOp::pow_scalar, "pow_scalar", 1, approximate, {"value"}},
};

const Row& row_of(ScalarOp op) {
  for (const Row& row : kRows)
    if (row.op == op) return row;
  fail(ErrorKind::internal, "internal error: scalar op {} is in no row", static_cast<int>(op));
}

/// Reads one program from left to right.
class Parser {
 public:
  Parser(const std::string& text, int input_count) : text_(text), rest_(text), slots_(input_count) {}

  std::vector<ScalarInstruction> parse() {
    std::vector<ScalarInstruction> program;
    do {
      program.push_back(instruction());
      ++slots_;
    } while (accept(';'));
    if (!rest_.empty()) bad("expected ';' or the end");
    return program;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    fail(ErrorKind::data, "program \"{}\", character {}: {}", text_, text_.size() - rest_.size() + 1, what);
  }

  bool accept(char wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) bad(fmt::format("expected '{}'", wanted));
  }

  template <typename Number>
  Number number(const char* what) {
    Number value{};
    const auto result = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (result.ec != std::errc()) bad(fmt::format("expected {}", what));
    rest_.remove_prefix(static_cast<size_t>(result.ptr - rest_.data()));
    return value;
  }

  int slot() {
    const std::string_view before = rest_;
    const int value = number<int>("a slot number");
    if (value >= 0 && value < slots_) return value;
    rest_ = before;
    bad(fmt::format("slot {} is not defined yet; there are {}", value, slots_));
  }

  ScalarInstruction instruction() {
    const std::string_view name = rest_.substr(0, rest_.find_first_of("(;"));
    const Row* found = nullptr;
    std::vector<std::string> known;
    for (const Row& row : kRows) {
      if (row.name == name && !row.is_tanh_form) found = &row;
      known.emplace_back(row.name);
    }
    if (found == nullptr)
      bad(fmt::format("there is no instruction '{}'{}", name, suggestion(std::string(name), known)));
    rest_.remove_prefix(name.size());
    expect('(');
    ScalarInstruction result{found->op};
    result.a = slot();
    if (found->operands > 1) {
      expect(',');
      result.b = slot();
    }
    if (found->operands > 2) {
      expect(',');
      result.c = slot();
    }
    for (size_t index = 0; index < 2 && !found->literals[index].empty(); ++index) {
      expect(',');
      (index == 0 ? result.literal : result.second_literal) = number<float>("a real literal");
    }
    if (found->literals[0].empty() && accept(',')) {
      for (const Row& row : kRows)
        if (row.name == name && row.is_tanh_form) result.op = row.op;
      if (result.op == found->op) bad(fmt::format("{} takes {} slots and nothing more", name, found->operands));
      if (number<int>("1: the approximate form") != 1) bad("only 1, the approximate form, may follow the slots");
    }
    expect(')');
    return result;
  }

  const std::string& text_;
  std::string_view rest_;
  int slots_;
};

std::vector<TensorType> infer_fused(const InferContext& context) {
  const int inputs = context.input_count();
  std::vector<ScalarInstruction> program;
  try {
    program = parse_program(context.attributes.text("program"), inputs);
  } catch (const Error& error) {
    context.fail(error.what());
  }
  int typed_input = 0;  // the first one that is not i32
  while (typed_input < inputs && context.dtype(typed_input) == DType::i32) ++typed_input;
  const DType dtype = typed_input < inputs ? context.require_compute_dtype(typed_input) : DType::f32;
  for (int input = 0; input < inputs; ++input) {
    if (context.dtype(input) != DType::i32) context.require_dtype(input, dtype);
    if (!broadcasts_to(context.shape(input), context.shape(0)))
      context.fail(fmt::format("{} does not broadcast to {}, the shape of all results", context.describe(input),
                               context.describe(0)));
  }
  const std::vector<int64_t>& results = context.attributes.integers("results");
  const int64_t slots = inputs + static_cast<int64_t>(program.size());
  if (results.empty()) context.fail("results=[] names no slot; name at least one instruction's");
  for (const int64_t slot : results)
    if (slot < inputs || slot >= slots)
      context.fail(fmt::format("results=[{}]: slot {} belongs to no instruction; give slots from {} to {}",
                               fmt::join(results, ","), slot, inputs, slots - 1));
  return std::vector<TensorType>(results.size(), typed(dtype, context.shape(0)));
}

/// An example as a constant, which takes a fifth of the room of code that builds it.
struct FusedCase {
  const char *label, *program;
  std::array<const char*, 3> inputs;  // types; null behind the last
  std::array<int64_t, 2> results;     // slots; 0: one alone
  std::array<OpExample::Range, 3> ranges = {};
};

constexpr FusedCase kFusedCases[] = {
    {"per channel", "multiply(0,1);add(3,2);relu(4)", {"f32[2,3,4,5]", "f32[1,3,1,1]", "f32[1,3,1,1]"}, {5}},
    {"residual sum", "add(0,1);relu(2)", {"f32[2,3,3,3]", "f32[2,3,3,3]"}, {3}},
    {"scalar operand", "multiply(0,1);sigmoid(2)", {"f32[7]", "f32[]"}, {3}},
    {"sums of integers", "multiply(0,1);add(3,2)", {"i32[4,37]", "f32[37]", "i32[4,1]"}, {4}},
    {"bias and gelu", "add(0,1);gelu(2)", {"f32[2,3,5]", "f32[5]"}, {3}},
    {"gelu and its slope", "add(0,1);gelu_slope(2);gelu(2)", {"f32[3,35]", "f32[35]"}, {4, 3}},
    {"approximate gelu and its slope", "gelu_slope(0,1);gelu(0,1)", {"f32[37]"}, {2, 1}},
    {"gelu, its slope and what follows", "gelu_slope(0);gelu(0);add(3,1)", {"f32[5,7]", "f32[7]"}, {4, 2}},
    {"two results", "gelu_backward(0,1);multiply(0,1);tanh(3)", {"f32[3,17]", "f32[3,17]"}, {2, 4}},
    {"inner axis stretches", "subtract(0,1);exp(2);square(3)", {"f32[3,4]", "f32[3,1]"}, {3, 4}},
    {"approximate gelu", "gelu(0,1);gelu_backward(1,0,1);add(2,3)", {"f32[33]", "f32[33]"}, {4}},
    {"positive operands",
     "log(0);sqrt(1);reciprocal(2);divide(3,4);add(6,5);add_scalar(7,-0.25);multiply_scalar(8,1.5)",
     {"f32[5,7]", "f32[7]", "f32[1,1]"},
     {9},
     {{{0.5, 2}, {0.5, 2}, {0.5, 2}}}},
    {"activations",
     "leaky_relu(0,0.1);elu(0,0.5);clip(0,-0.5,0.25);hardswish(1);silu(2);softplus(3);erf(4);pow_scalar(7,3);"
     "add(5,6);add(8,9);add(10,11)",
     {"f32[2,19]", "f32[19]"},
     {12, 8}},
    {"derivatives of activations",
     "leaky_relu_backward(0,1,0.1);elu_backward(0,1,0.5);clip_backward(0,1,-0.5,0.25);hardswish_backward(0,1);"
     "silu_backward(0,1);add(2,3);add(4,5);add(7,8);add(9,6)",
     {"f32[3,9]", "f32[3,9]"},
     {10}},
    {"choice between operands",
     "greater_equal(0,2);where(3,0,1);floor(4);sign(0);pow(1,5);where(6,5,4)",
     {"f32[4,9]", "f32[9]", "f32[]"},
     {8},
     {{{-2, 2}, {1.1, 1.9}, {0, 0.1}}}},
    {"waves",
     "sin(0);cos(1);tan(0);asin(0);acos(1);atan(2);add(3,4);add(5,6);add(7,8);multiply(9,10);subtract(10,11)",
     {"f32[5,7]", "f32[7]"},
     {12}},
    {"hyperbolic waves",
     "sinh(0);cosh(1);asinh(2);acosh(3);atanh(0);add(4,5);multiply(6,7)",
     {"f32[37]", "f32[37]"},
     {7, 8},
     {{{-0.9, 0.9}, {0.5, 2}}}},
    {"whole numbers", "ceil(0);round(1);subtract(2,3)", {"f32[3,9]", "f32[9]"}, {4}, {{{0.1, 0.9}, {1.1, 1.4}}}},
    {"selections",
     "maximum(0,1);minimum(0,2);equal(0,0);greater(0,2);relu_backward(3,4);absolute(7);negate(8);"
     "add(9,5);multiply(10,6)",
     {"f32[2,9]", "f32[9]", "f32[2,9]"},
     {10, 11}},
};

OpExample example_of(const FusedCase& fused) {
  OpExample example;
  example.label = fused.label;
  std::vector<int64_t> results{fused.results[0]};
  if (fused.results[1] != 0) results.push_back(fused.results[1]);
  example.attributes = {{"program", std::string(fused.program)}, {"results", results}};
  for (size_t input = 0; input < fused.inputs.size() && fused.inputs[input] != nullptr; ++input) {
    example.inputs.push_back(parse_tensor_type(fused.inputs[input]));
    example.ranges.push_back(fused.ranges[input]);
  }
  return example;
}

OpDef fused_op() {
  using List = std::vector<int64_t>;
  OpDef op;
  op.name = "fused_elementwise";
  op.summary = "A straight line of elementwise instructions in one sweep; made by the pass fuse_elementwise only.";
  op.inputs = {"x..."};
  op.outputs = {"y..."};
  op.attributes = {required_attribute("program", "", "instructions such as \"add(0,1);relu(2)\""),
                   required_attribute("results", List{}, "the slots that are outputs, in order")};
  op.infer = infer_fused;
  op.flops = [](const std::vector<TensorType>& inputs, const std::vector<TensorType>&, const Attributes& attributes) {
    const auto program = parse_program(attributes.text("program"), static_cast<int>(inputs.size()));
    return static_cast<int64_t>(program.size()) * inputs.front().elements();
  };
  op.layout_rule = LayoutRule::elementwise;
  op.precision = PrecisionRule::follow;
  for (int result = 0; result < 2; ++result)
    for (int input = 0; input < 4; ++input) op.in_place.emplace_back(result, input);

  for (const FusedCase& fused : kFusedCases) op.examples.push_back(example_of(fused));
  return op;
}

}  // namespace

int operand_count(ScalarOp op) { return row_of(op).operands; }

bool is_exactly_rounded(ScalarOp op) { return row_of(op).rounding == Rounding::exact; }

std::vector<std::string> scalar_op_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows)
    if (!row.is_tanh_form) names.emplace_back(row.name);
  return names;
}

std::string print_program(const std::vector<ScalarInstruction>& program) {
  std::string text;
  for (const ScalarInstruction& instruction : program) {
    const Row& row = row_of(instruction.op);
    if (!text.empty()) text += ';';
    text += fmt::format("{}({}", row.name, instruction.a);
    if (row.operands > 1) text += fmt::format(",{}", instruction.b);
    if (row.operands > 2) text += fmt::format(",{}", instruction.c);
    if (!row.literals[0].empty()) text += fmt::format(",{}", instruction.literal);
    if (!row.literals[1].empty()) text += fmt::format(",{}", instruction.second_literal);
    if (row.is_tanh_form) text += ",1";
    text += ')';
  }
  return text;
}

std::vector<ScalarInstruction> parse_program(const std::string& text, int input_count) {
  return Parser(text, input_count).parse();
}

bool scalar_instruction(const std::string& op, const Attributes& attributes, ScalarInstruction& instruction) {
  const bool approximate = attributes.has("approximate") && attributes.boolean("approximate");
  for (const Row& row : kRows) {
    if (row.name != op || row.is_tanh_form != approximate) continue;
    instruction = ScalarInstruction{row.op};
    const auto [literal, second_literal] = scalar_literals(instruction, attributes);
    instruction.literal = static_cast<float>(literal);
    instruction.second_literal = static_cast<float>(second_literal);
    return true;
  }
  return false;
}

std::array<double, 2> scalar_literals(const ScalarInstruction& instruction, const Attributes& attributes) {
  const Row& row = row_of(instruction.op);
  std::array<double, 2> literals{};
  for (size_t index = 0; index < literals.size() && !row.literals[index].empty(); ++index)
    literals[index] = attributes.real(std::string(row.literals[index]));
  return literals;
}

void add_fused_ops(OpRegistry& registry) { registry.add(fused_op()); }

}  // namespace weft::ops
