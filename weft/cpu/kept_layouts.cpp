#include "weft/cpu/kept_layouts.h"

#include "weft/cpu/onednn/convolution.h"

namespace weft {

namespace {

std::optional<LayoutChoice> kept_layouts(const NodeSignature& node, const KernelOptions& options,
                                         const KernelFactory& make) {
  auto convolution = onednn::read_convolution(node);
  std::string why_not;
  if (!convolution || make(node, options, why_not) == nullptr) return std::nullopt;
  LayoutChoice choice;
  for (const TensorType& type : node.inputs) choice.inputs.push_back(type.layout);
  choice.outputs.resize(node.outputs.size());
  convolution->pass = onednn::Pass::forward;
  convolution->weights.dtype = convolution->image.dtype;  // the gradient itself may be wider
  const onednn::ThreadScope scope(options.threads);
  if (const auto forward = onednn::preferred_convolution_layouts(*convolution, onednn::Engine()))
    choice.outputs[0] = forward->inputs[1];
  return choice;
}

}  // namespace

void add_kept_layouts(KernelTable& table) {
  for (KernelCandidate& candidate : table.candidates_to_change("conv2d_backward_weights")) {
    if (candidate.family == "onednn") return;
    candidate.layouts = [make = candidate.make](const NodeSignature& node, const KernelOptions& options) {
      return kept_layouts(node, options, make);
    };
  }
}

}  // namespace weft
