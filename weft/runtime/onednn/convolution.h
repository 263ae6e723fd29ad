// conv2d and its two gradients on oneDNN's direct convolutions.
#pragma once

#include <memory>
#include <optional>

#include "weft/graph/backend.h"
#include "weft/runtime/onednn/call_kernel.h"

namespace weft::onednn {

/// A conv2d, conv2d_backward_data or conv2d_backward_weights node, its operands told apart by what they are.
struct Convolution {
  Pass pass = Pass::forward;
  TensorType image, weights, output;  // or their gradients
  Operand image_operand, weights_operand, output_operand;
  std::optional<Operand> bias;  // f32, one number for each channel of the output; or its gradient
  std::array<int64_t, 2> stride{}, padding{}, dilation{};
  int64_t groups = 1;
};
/// nullopt for nodes of other ops and where an operand is empty.
std::optional<Convolution> read_convolution(const NodeSignature& node);

/// Grouped weights are [G, O/G, C/G, KH, KW] in oneDNN. Without `layout` the primitive may choose.
/// nullopt where the layout of the 4-D tensor does not split along the groups.
std::optional<MemoryDesc> describe_weights(const Convolution& convolution, const std::optional<Layout>& layout);
/// The 4-D layout of oneDNN's weights; nullopt where there is none.
std::optional<Layout> weights_layout(const Convolution& convolution, const MemoryDesc& desc);

/// The operand layouts on which oneDNN runs the node fastest. Layouts that the operands have already are kept where an
/// implementation made for the shape takes them; the weights' gradient gets the layout that the forward pass wants.
std::optional<LayoutChoice> preferred_convolution_layouts(const Convolution& convolution, const Engine& engine);

}  // namespace weft::onednn
