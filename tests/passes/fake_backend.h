// A machine whose convolutions want channels in blocks of 16, and whose kernels all take that but sigmoid's.
// Those of 3x3 take workspace. concat and slice follow their first operand, where no block is cut.
#pragma once

#include "weft/cpu/cpu_backend.h"
#include "weft/device/backend.h"
#include "weft/ops/window.h"

namespace weft::test {

class FakeBackend : public Backend {
 public:
  std::optional<LayoutChoice> preferred_layouts(const NodeSignature& node) const override {
    if (node.op->name == "concat" || node.op->name == "slice") return as_first_operand(node);
    if (!node.op->name.starts_with("conv2d") && node.op->name != "fused_conv2d") return std::nullopt;
    LayoutChoice choice;
    const auto wanted = [&](const TensorType& type, const std::string& operand) {
      const bool is_weight = operand.find("weight") != std::string::npos;
      if (type.shape.rank() != 4 || type.shape[1] % 16 != 0) return Layout{};
      return parse_layout(is_weight ? "ABcd16b16a" : "aBcd16b", 4);
    };
    for (size_t index = 0; index < node.inputs.size(); ++index)
      choice.inputs.push_back(wanted(node.inputs[index], node.op->inputs[index]));
    choice.outputs.push_back(wanted(node.outputs[0], node.op->outputs[0]));
    return choice;
  }
  bool supports_layouts(const NodeSignature& node) const override { return node.op->name != "sigmoid"; }
  KernelChoice choose_kernel(const NodeSignature&) const override { return {"fake", 0, {}}; }
  bool takes_granted_workspace(const NodeSignature& node) const override {
    const bool is_weights = node.op->name == "conv2d_backward_weights";
    return ops::has_winograd_windows((is_weights ? node.outputs[0] : node.inputs[1]).shape, node.attributes);
  }
  std::optional<std::vector<Tensor>> evaluate(const NodeSignature& node,
                                              const std::vector<Tensor>& operands) const override {
    return CpuBackend(1, reference_kernels()).evaluate(node, operands);
  }
  bool computes_fast(DType) const override { return false; }

 private:
  static std::optional<LayoutChoice> as_first_operand(const NodeSignature& node) {
    const Layout& layout = node.inputs[0].layout;
    for (const TensorType& type : node.inputs)
      if (type.shape.rank() != 4 || type.shape[1] % 16 != 0) return std::nullopt;
    if (layout.is_plain() || node.outputs[0].shape[1] % 16 != 0) return std::nullopt;
    return LayoutChoice{std::vector<Layout>(node.inputs.size(), layout), {layout}};
  }
};

}  // namespace weft::test
