// The program inside a fused_elementwise node: a straight line of scalar instructions over its operands.
//
// Attributes: program = "add(0,1);relu(3)"; results = [4] (which slots are outputs, in order).
// Slots 0..n-1 are the node's inputs, each instruction appends one slot. Instruction names are the elementwise ops';
// attributes follow as real literals: "multiply_scalar(2,0.5)", "clip(0,-1,6)", "gelu(1,1)" (approximate),
// "gelu_backward(0,1,1)". Every input is either of the common shape, or a single element, or broadcasts to it by
// NumPy's rules. All results have the common shape, that of input 0, and the type of the inputs. Slots are f32 whatever
// that type is: inputs are widened, and results rounded once. Some inputs may be i32, such as sums of integers, which
// are rounded to f32.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "weft/graph/attributes.h"

namespace weft::ops {

enum class ScalarOp {
  relu,
  leaky_relu,
  elu,
  clip,
  hardswish,
  gelu,
  gelu_tanh,
  gelu_slope,
  gelu_tanh_slope,
  silu,
  tanh,
  sigmoid,
  softplus,
  exp,
  log,
  sqrt,
  negate,
  absolute,
  square,
  reciprocal,
  erf,
  sign,
  floor,
  ceil,
  round,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  add,
  subtract,
  multiply,
  divide,
  pow,
  maximum,
  minimum,
  equal,
  greater,
  greater_equal,
  where,
  relu_backward,
  leaky_relu_backward,
  elu_backward,
  clip_backward,
  hardswish_backward,
  gelu_backward,
  gelu_tanh_backward,
  silu_backward,
  add_scalar,
  multiply_scalar,
  pow_scalar,
};

struct ScalarInstruction {
  ScalarOp op;
  int a = -1, b = -1, c = -1;             // slots; -1 for those that it does not have
  float literal = 0, second_literal = 0;  // its attributes in the order of the table in fused.cpp
  friend bool operator==(const ScalarInstruction&, const ScalarInstruction&) = default;
};

/// Operands that an instruction takes: 1 to 3.
int operand_count(ScalarOp op);
/// True where IEEE 754 leaves one result in f32 for given operands, whoever computes it.
bool is_exactly_rounded(ScalarOp op);
/// The ops whose nodes have an instruction, each once.
std::vector<std::string> scalar_op_names();

std::string print_program(const std::vector<ScalarInstruction>& program);
/// Error(data) where the text is no program over `input_count` inputs.
std::vector<ScalarInstruction> parse_program(const std::string& text, int input_count);
/// The instruction for a node of an elementwise op with these attributes (slots unset); false where the op has none.
bool scalar_instruction(const std::string& op, const Attributes& attributes, ScalarInstruction& instruction);
/// Its literals before they are rounded to f32; 0 for those that it does not have.
std::array<double, 2> scalar_literals(const ScalarInstruction& instruction, const Attributes& attributes);

}  // namespace weft::ops
