#include "weft/ops/fused.h"

#include <algorithm>

#include "ops_fixture.h"

namespace weft::ops {
namespace {

std::string program_error(const std::string& text, int inputs) {
  try {
    parse_program(text, inputs);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return "";
}

TEST(FusedProgram, ParsesInstructionsInOrder) {
  const std::vector<ScalarInstruction> expected{
      {ScalarOp::add, 0, 1}, {ScalarOp::gelu_tanh, 2}, {ScalarOp::multiply_scalar, 3, -1, -1, 0.5F}};
  EXPECT_EQ(parse_program("add(0,1);gelu(2,1);multiply_scalar(3,0.5)", 2), expected);
}

TEST(FusedProgram, EveryInstructionPrintsAndParsesBack) {
  std::vector<ScalarInstruction> program;
  const auto in = [](ScalarOp op, std::initializer_list<ScalarOp> ops) {
    return std::count(ops.begin(), ops.end(), op) > 0;
  };
  for (int op = 0; op <= static_cast<int>(ScalarOp::pow_scalar); ++op) {
    const ScalarOp scalar = static_cast<ScalarOp>(op);
    const bool bounds = in(scalar, {ScalarOp::clip, ScalarOp::clip_backward});
    const bool literal = bounds || in(scalar, {ScalarOp::leaky_relu, ScalarOp::leaky_relu_backward, ScalarOp::elu,
                                               ScalarOp::elu_backward, ScalarOp::add_scalar, ScalarOp::multiply_scalar,
                                               ScalarOp::pow_scalar});
    const int operands = operand_count(scalar);
    program.push_back(
        {scalar, op, operands > 1 ? 1 : -1, operands > 2 ? 0 : -1, literal ? -1e-7F : 0, bounds ? 6.5F : 0});
  }
  EXPECT_EQ(parse_program(print_program(program), 2), program);
}

TEST(FusedProgram, TextParsesAndPrintsBack) {
  const std::string text = "gelu_backward(0,1,1);relu_backward(2,1);add_scalar(3,0.1);gelu(4)";
  EXPECT_EQ(print_program(parse_program(text, 2)), text);
}

TEST(FusedProgram, LiteralKeepsItsBits) {
  const float literal = 0.1F + 0.2F;
  const std::vector<ScalarInstruction> program{{ScalarOp::add_scalar, 0, -1, -1, literal}};
  EXPECT_EQ(parse_program(print_program(program), 1)[0].literal, literal);
}

TEST(FusedProgram, TakesTheInstructionOfANode) {
  ScalarInstruction instruction{};
  ASSERT_TRUE(scalar_instruction("gelu", {{"approximate", true}}, instruction));
  EXPECT_EQ(instruction.op, ScalarOp::gelu_tanh);
  ASSERT_TRUE(scalar_instruction("gelu", {{"approximate", false}}, instruction));
  EXPECT_EQ(instruction.op, ScalarOp::gelu);
  ASSERT_TRUE(scalar_instruction("multiply_scalar", {{"value", 0.25}}, instruction));
  EXPECT_EQ(instruction, (ScalarInstruction{ScalarOp::multiply_scalar, -1, -1, -1, 0.25F}));
  ASSERT_TRUE(scalar_instruction("clip", {{"low", -0.5}, {"high", 6.0}}, instruction));
  EXPECT_EQ(instruction, (ScalarInstruction{ScalarOp::clip, -1, -1, -1, -0.5F, 6.0F}));
}

TEST(FusedProgram, OtherOpsHaveNoInstruction) {
  ScalarInstruction instruction{};
  EXPECT_FALSE(scalar_instruction("matmul", {}, instruction));
  EXPECT_FALSE(scalar_instruction("softmax", {{"axis", int64_t{-1}}}, instruction));
}

TEST(FusedProgram, EmptyText) {
  EXPECT_THAT(program_error("", 1), testing::HasSubstr("character 1: there is no instruction ''"));
}

TEST(FusedProgram, UnknownInstruction) {
  EXPECT_EQ(program_error("add(0,1);rellu(2)", 2),
            "program \"add(0,1);rellu(2)\", character 10: there is no instruction 'rellu'; did you mean 'relu'?");
}

TEST(FusedProgram, SlotOfTheFuture) {
  EXPECT_EQ(program_error("relu(1)", 1), "program \"relu(1)\", character 6: slot 1 is not defined yet; there are 1");
}

TEST(FusedProgram, MissingOperand) {
  EXPECT_EQ(program_error("add(0)", 1), "program \"add(0)\", character 6: expected ','");
}

TEST(FusedProgram, MissingLiteral) {
  EXPECT_EQ(program_error("add_scalar(0,)", 1), "program \"add_scalar(0,)\", character 14: expected a real literal");
}

TEST(FusedProgram, MissingSecondLiteral) {
  EXPECT_EQ(program_error("clip(0,1)", 1), "program \"clip(0,1)\", character 9: expected ','");
}

TEST(FusedProgram, MissingThirdOperand) {
  EXPECT_EQ(program_error("where(0,1)", 2), "program \"where(0,1)\", character 10: expected ','");
}

TEST(FusedProgram, LiteralWhereNoneBelongs) {
  EXPECT_EQ(program_error("relu(0,1)", 1), "program \"relu(0,1)\", character 8: relu takes 1 slots and nothing more");
}

TEST(FusedProgram, TrailingText) {
  EXPECT_EQ(program_error("relu(0) ", 1), "program \"relu(0) \", character 8: expected ';' or the end");
}

using Fused = OpsTest;

TEST_F(Fused, ResultsHaveTheShapeOfTheFirstOperand) {
  const ValueId x = input("x", {2, 3, 4, 5}), scale = input("scale", {1, 3, 1, 1});
  const auto outputs = graph_.add_node("fused_elementwise", {x, scale},
                                       {{"program", "multiply(0,1);relu(2)"}, {"results", std::vector<int64_t>{3, 2}}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(graph_.shape(outputs[0]), Shape({2, 3, 4, 5}));
  EXPECT_EQ(graph_.shape(outputs[1]), Shape({2, 3, 4, 5}));
}

TEST_F(Fused, CountsOneOperationPerInstructionAndElement) {
  const ValueId x = input("x", {2, 3});
  const auto outputs = graph_.add_node("fused_elementwise", {x},
                                       {{"program", "exp(0);square(1)"}, {"results", std::vector<int64_t>{2}}});
  const Node& node = *graph_.producer(outputs[0]);
  EXPECT_EQ(node.op->flops({graph_.type(x)}, {graph_.type(outputs[0])}, node.attributes), 12);
}

TEST_F(Fused, BadProgramNamesTheNode) {
  const ValueId x = input("x", {2});
  EXPECT_EQ(
      shape_error([&] {
        graph_.add("fused_elementwise", {x}, {{"program", "relu(3)"}, {"results", std::vector<int64_t>{1}}}, "block");
      }),
      "[fused_elementwise] 'block': program \"relu(3)\", character 6: slot 3 is not defined yet; there are 1");
}

TEST_F(Fused, OperandLargerThanTheFirst) {
  const ValueId bias = input("bias", {3}), x = input("x", {2, 3});
  EXPECT_EQ(shape_error([&] {
              graph_.add("fused_elementwise", {bias, x},
                         {{"program", "add(0,1)"}, {"results", std::vector<int64_t>{2}}}, "block");
            }),
            "[fused_elementwise] 'block': 'x' (2,3) does not broadcast to 'bias' (3), the shape of all results");
}

TEST_F(Fused, ResultThatIsAnOperand) {
  const ValueId x = input("x", {2});
  EXPECT_EQ(
      shape_error([&] {
        graph_.add("fused_elementwise", {x}, {{"program", "relu(0)"}, {"results", std::vector<int64_t>{0}}}, "block");
      }),
      "[fused_elementwise] 'block': results=[0]: slot 0 belongs to no instruction; give slots from 1 to 1");
}

TEST_F(Fused, NoResults) {
  const ValueId x = input("x", {2});
  EXPECT_EQ(
      shape_error([&] {
        graph_.add("fused_elementwise", {x}, {{"program", "relu(0)"}, {"results", std::vector<int64_t>{}}}, "block");
      }),
      "[fused_elementwise] 'block': results=[] names no slot; name at least one instruction's");
}

}  // namespace
}  // namespace weft::ops
