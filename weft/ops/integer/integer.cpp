// Ops on integers and booleans with NumPy broadcasting: remainders, bits, shifts, logic. None is differentiable.
#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"
#include "weft/ops/elementwise.h"

namespace weft::ops {

namespace {

using Require = DType (*)(const InferContext&);

DType integers(const InferContext& context) { return context.require_integer(0); }
DType numbers(const InferContext& context) { return context.require_number(0); }
DType booleans(const InferContext& context) {
  context.require_dtype(0, DType::boolean);
  return DType::boolean;
}

/// One or two operands of a type that `require` accepts, and a result of it.
OpDef op_on(std::string name, std::string summary, std::vector<std::string> inputs, Require require) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = std::move(inputs);
  op.outputs = {"y"};
  op.infer = [require](const InferContext& context) -> std::vector<TensorType> {
    const DType dtype = require(context);
    if (context.input_count() == 1) return {typed(dtype, context.shape(0))};
    context.require_dtype(1, dtype);
    return {typed(dtype, broadcast_operands(context, 0, 1))};
  };
  // Constant between the jumps, as the comparisons are.
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    return std::vector<ValueId>(context.inputs.size());
  };
  op.flops = count_elements;
  op.work = work::kElementwise;
  op.infer_symbolic = infer_symbolic_elementwise;
  return op;
}

/// Calls that stretch either operand, of these types.
std::vector<OpExample> examples_of(DType narrow, DType wide, OpExample::Range a, OpExample::Range b) {
  const std::vector<OpExample::Range> ranges{a, b};
  return {
      {"equal shapes", {typed(wide, {3, 5}), typed(wide, {3, 5})}, {}, ranges},
      {"both stretch", {typed(narrow, {2, 1, 3}), typed(narrow, {4, 1})}, {}, ranges},
      {"scalar on the right", {typed(wide, {7}), typed(wide, {})}, {}, ranges},
  };
}

OpDef on_integers(std::string name, std::string summary, OpExample::Range b = {0, 100}) {
  OpDef op = op_on(std::move(name), std::move(summary), {"a", "b"}, integers);
  op.examples = examples_of(DType::u8, DType::i64, {0, 100}, b);
  return op;
}

OpDef on_booleans(std::string name, std::string summary) {
  OpDef op = op_on(std::move(name), std::move(summary), {"a", "b"}, booleans);
  op.examples = examples_of(DType::boolean, DType::boolean, {0, 2}, {0, 2});
  return op;
}

std::vector<OpExample> unary_examples(DType dtype, OpExample::Range range) {
  return {{"scalar", {typed(dtype, {})}, {}, {range}},
          {"vector", {typed(dtype, {7})}, {}, {range}},
          {"image", {typed(dtype, {2, 3, 2, 2})}, {}, {range}}};
}

OpDef modulo_op() {
  OpDef op = op_on("modulo", "The remainder of a / b; 0 where integers are divided by 0.", {"a", "b"}, numbers);
  op.attributes = {attribute("truncated", false, "it has the sign of a, as C's % and fmod; else of b, as Python's %")};
  // A step function of b, and of a with the slope 1: nothing that training follows.
  op.gradient = nullptr;
  op.examples = examples_of(DType::i8, DType::i64, {-100, 100}, {-7, 7});
  for (OpExample& example : examples_of(DType::i32, DType::i32, {-100, 100}, {-7, 7})) {
    example.label += ", truncated";
    example.attributes.set("truncated", true);
    op.examples.push_back(std::move(example));
  }
  return op;
}

}  // namespace

void add_integer_ops(OpRegistry& registry) {
  registry.add(modulo_op());
  registry.add(on_integers("bitwise_and", "The bits that a and b both have."));
  registry.add(on_integers("bitwise_or", "The bits that a or b has."));
  registry.add(on_integers("bitwise_xor", "The bits that one of a and b has."));
  registry.add(
      on_integers("shift_left", "a times 2 to the power of b; 0 where b is negative or no bit stays.", {0, 9}));
  registry.add(
      on_integers("shift_right",
                  "a over 2 to the power of b, rounded down; what is left of it where b is too large, and where "
                  "b is negative: -1 below 0, else 0.",
                  {0, 9}));
  OpDef bits = op_on("bitwise_not", "The bits that x does not have.", {"x"}, integers);
  bits.examples = unary_examples(DType::i32, {-100, 100});
  registry.add(std::move(bits));
  registry.add(on_booleans("logical_and", "Whether both hold."));
  registry.add(on_booleans("logical_or", "Whether one holds, or both."));
  registry.add(on_booleans("logical_xor", "Whether one holds, but not both."));
  OpDef inverse = op_on("logical_not", "Whether x does not hold.", {"x"}, booleans);
  inverse.examples = unary_examples(DType::boolean, {0, 2});
  registry.add(std::move(inverse));
}

ValueId modulo(Graph& graph, ValueId a, ValueId b, bool truncated, const std::string& name) {
  return graph.add("modulo", {a, b}, {{"truncated", truncated}}, name);
}
ValueId bitwise_and(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("bitwise_and", {a, b}, {}, name);
}
ValueId bitwise_or(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("bitwise_or", {a, b}, {}, name);
}
ValueId bitwise_xor(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("bitwise_xor", {a, b}, {}, name);
}
ValueId bitwise_not(Graph& graph, ValueId x, const std::string& name) {
  return graph.add("bitwise_not", {x}, {}, name);
}
ValueId shift_left(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("shift_left", {a, b}, {}, name);
}
ValueId shift_right(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("shift_right", {a, b}, {}, name);
}
ValueId logical_and(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("logical_and", {a, b}, {}, name);
}
ValueId logical_or(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("logical_or", {a, b}, {}, name);
}
ValueId logical_xor(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add("logical_xor", {a, b}, {}, name);
}
ValueId logical_not(Graph& graph, ValueId x, const std::string& name) {
  return graph.add("logical_not", {x}, {}, name);
}

}  // namespace weft::ops
