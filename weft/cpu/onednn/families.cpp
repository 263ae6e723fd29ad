#include "weft/cpu/onednn/families.h"

namespace weft::onednn {

std::string no_implementation(const NodeSignature& node) {
  std::string operands;
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const TensorType& type : *types) operands += (operands.empty() ? "" : ", ") + to_string(type);
  return "no fast implementation for " + operands;
}

std::unique_ptr<Kernel> single_call(const Request& request, const PrimitiveDesc& desc,
                                    const std::vector<Argument>& arguments, std::string& why_not) {
  if (!desc) return declined(why_not, no_implementation(request.node));
  auto kernel = request.new_kernel();
  kernel->add_call(desc, arguments);
  kernel->set_name("onednn:" + desc.implementation());
  return kernel;
}

}  // namespace weft::onednn
