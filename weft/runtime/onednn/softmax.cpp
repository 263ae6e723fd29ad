// Softmax and its logarithm along one axis of a plain tensor.
#include "weft/runtime/onednn/ask_layers.h"
#include "weft/runtime/onednn/families.h"

namespace weft::onednn {

namespace {

std::unique_ptr<Kernel> make_softmax(const Request& request, dnnl_alg_kind_t algorithm, std::string& why_not) {
  const NodeSignature& node = request.node;
  const TensorType& type = node.inputs[0];
  const auto desc = describe(type);
  if (!desc || type != node.outputs[0] || !type.layout.is_plain())
    return declined(why_not, "wants plain operands, got " + to_string(type));
  const int64_t given = node.attributes.integer("axis");
  const int axis = static_cast<int>(given < 0 ? given + type.shape.rank() : given);
  if (algorithm == dnnl_softmax_log && type.shape[axis] == 1)
    return declined(why_not, "oneDNN 2.6 takes 1e-6 for the logarithm of 1, which is all that one class has");
  return single_call(request, skip_reference(ask_softmax(*request.engine, algorithm, *desc, axis)),
                     {{DNNL_ARG_SRC, *desc, input(0)}, {DNNL_ARG_DST, *desc, output(0)}}, why_not);
}

}  // namespace

void add_softmax(const Register& add) {
  add("softmax", [](const Request& request, std::string& why_not) {
    return make_softmax(request, dnnl_softmax_accurate, why_not);
  });
  add("log_softmax",
      [](const Request& request, std::string& why_not) { return make_softmax(request, dnnl_softmax_log, why_not); });
}

}  // namespace weft::onednn
