// Elementwise ops, one instruction per node, and fused programs of them.
#include <array>

#include "weft/base/error.h"
#include "weft/cpu/reference/integer.h"
#include "weft/cpu/reference/reference.h"
#include "weft/ops/scalar_math.h"

namespace weft::reference {
namespace {

std::vector<StridedView> views_of(const NodeSignature& node) {
  std::vector<StridedView> views;
  for (const TensorType& type : node.inputs) views.push_back(broadcast_view(type.shape, node.outputs[0].shape));
  return views;
}

/// One instruction over operands of one dtype each; 32-bit integers are exact in double.
Body prepare_single(const NodeSignature& node) {
  ops::ScalarInstruction instruction;
  check(ops::scalar_instruction(node.op->name, node.attributes, instruction),
        "every elementwise op has an instruction");
  const int64_t elements = node.outputs[0].elements();
  std::vector<DType> types;
  for (const TensorType& type : node.inputs) types.push_back(type.dtype);
  const DType out_type = node.outputs[0].dtype;
  return [=, views = views_of(node)](const KernelArguments& call) {
    std::array<double, 3> values{};
    for (int64_t i = 0; i < elements; ++i) {
      for (size_t k = 0; k < types.size(); ++k) values[k] = load_element(types[k], call.inputs[k], views[k](i));
      store_element(out_type, call.outputs[0], i, ops::evaluate_scalar(instruction, values[0], values[1], values[2]));
    }
  };
}

Body prepare_program(const NodeSignature& node) {
  const size_t input_count = node.inputs.size();
  const auto program = ops::parse_program(node.attributes.text("program"), static_cast<int>(input_count));
  const int64_t elements = node.outputs[0].elements();
  std::vector<DType> types;
  for (const TensorType& type : node.inputs) types.push_back(type.dtype);
  return [=, views = views_of(node), results = node.attributes.integers("results"),
          slots = std::vector<double>(input_count + program.size())](const KernelArguments& call) mutable {
    for (int64_t i = 0; i < elements; ++i) {
      for (size_t slot = 0; slot < input_count; ++slot)
        slots[slot] = static_cast<float>(load_element(types[slot], call.inputs[slot], views[slot](i)));
      for (size_t step = 0; step < program.size(); ++step) {
        const ops::ScalarInstruction& instruction = program[step];
        const auto value = [&](int slot) { return slot < 0 ? 0 : slots[static_cast<size_t>(slot)]; };
        slots[input_count + step] =
            ops::evaluate_scalar(instruction, value(instruction.a), value(instruction.b), value(instruction.c));
      }
      for (size_t k = 0; k < results.size(); ++k)
        output(call, k)[i] = static_cast<float>(slots[static_cast<size_t>(results[k])]);
    }
  };
}

}  // namespace

void add_elementwise(KernelTable& table) {
  for (const std::string& op : ops::scalar_op_names()) add_numbers(table, op, prepare_single, prepare_typed);
  add_plain(table, "fused_elementwise", prepare_program);
}

}  // namespace weft::reference
