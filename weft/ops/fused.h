// The program inside a fused_elementwise node: a straight line of scalar instructions over its operands.
//
// Attributes: program = "add(0,1);relu(3)"; results = [4] (which slots are outputs, in order).
// Slots 0..n-1 are the node's inputs, each instruction appends one slot. Instruction names are the elementwise ops';
// attributes follow as a last real literal: "multiply_scalar(2,0.5)", "gelu(1,1)" (approximate),
// "gelu_backward(0,1,1)". Every input is f32 and either of the common shape, or a single element, or broadcasts to it
// by NumPy's rules. All results have the common shape, which is that of input 0.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/attributes.h"

namespace weft::ops {

enum class ScalarOp {
  relu,
  gelu,
  gelu_tanh,
  tanh,
  sigmoid,
  exp,
  log,
  sqrt,
  negate,
  absolute,
  square,
  reciprocal,
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  equal,
  greater,
  relu_backward,
  gelu_backward,
  gelu_tanh_backward,
  add_scalar,
  multiply_scalar,
};

struct ScalarInstruction {
  ScalarOp op;
  int a = -1, b = -1;  // slots; b is -1 for unary ones
  float literal = 0;   // add_scalar, multiply_scalar
  friend bool operator==(const ScalarInstruction&, const ScalarInstruction&) = default;
};

/// Operands that an instruction takes: 1 or 2.
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

}  // namespace weft::ops
