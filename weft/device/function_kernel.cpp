#include "weft/device/function_kernel.h"

#include "weft/base/error.h"

namespace weft {

namespace {

class FunctionKernel : public Kernel {
 public:
  FunctionKernel(std::string name, KernelBody body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string name() const override { return name_; }
  void run(const KernelArguments& arguments) override { body_(arguments); }

 private:
  std::string name_;
  KernelBody body_;
};

/// Empty where the operands fit, else why not.
std::string objection(const std::vector<TensorType>& types, const char* side, const OperandRules& rules) {
  for (size_t index = 0; index < types.size(); ++index) {
    const TensorType& type = types[index];
    if (!rules.any_layout && !type.layout.is_plain())
      return fmt::format("layout {} of {} {}: only plain ones are served", to_string(type.layout), side, index);
    if (!rules.any_floating && is_floating(type.dtype) && type.dtype != DType::f32)
      return fmt::format("{} {} is {}: only f32 is served", side, index, name_of(type.dtype));
  }
  return "";
}

}  // namespace

KernelFactory function_kernel(std::string name, PrepareKernel prepare, const OperandRules& rules) {
  return [name = std::move(name), prepare = std::move(prepare), rules](
             const NodeSignature& node, const KernelOptions& options, std::string& why_not) -> std::unique_ptr<Kernel> {
    why_not = objection(node.inputs, "operand", rules);
    if (why_not.empty()) why_not = objection(node.outputs, "output", rules);
    if (!why_not.empty()) return nullptr;
    return std::make_unique<FunctionKernel>(name, prepare(node, options));
  };
}

}  // namespace weft
