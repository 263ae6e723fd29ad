// conv2d, its two gradients and fused_conv2d on oneDNN's direct convolutions.
#pragma once

#include <memory>
#include <optional>

#include "weft/cpu/onednn/call_kernel.h"
#include "weft/cpu/onednn/families.h"
#include "weft/device/backend.h"

namespace weft::onednn {

/// A conv2d, conv2d_backward_data, conv2d_backward_weights or fused_conv2d node, its operands told apart by what they
/// are.
struct Convolution {
  Pass pass = Pass::forward;
  TensorType image, weights, output;  // or their gradients
  Operand image_operand, weights_operand, output_operand;
  std::optional<Operand> bias;  // f32, one number for each channel of the output; or its gradient
  std::array<int64_t, 2> stride{}, padding{}, dilation{};
  int64_t groups = 1;
  int64_t winograd = 0;  // bytes that it may take to be computed so: passes/layout/mark_winograd.h
  // Of fused_conv2d:
  bool is_fused = false;
  std::string activation = "none";  // or relu, relu6
  std::optional<Operand> residual = {};

  /// The same without activation and residual.
  Convolution unfused() const;
};
/// nullopt for nodes of other ops and where an operand is empty.
std::optional<Convolution> read_convolution(const NodeSignature& node);

struct ConvolutionDescs {
  MemoryDesc image, weights, output;
};

/// Grouped weights are [G, O/G, C/G, KH, KW] in oneDNN. Without `layout` the primitive may choose.
/// nullopt where the layout of the 4-D tensor does not split along the groups.
std::optional<MemoryDesc> describe_weights(const Convolution& convolution, const std::optional<Layout>& layout);
/// The 4-D layout of oneDNN's weights; nullopt where there is none.
std::optional<Layout> weights_layout(const Convolution& convolution, const MemoryDesc& desc);

/// What weft asks oneDNN for; descriptors of weights as describe_weights() gives them.
PrimitiveDesc ask_convolution(const Engine& engine, const Convolution& convolution, const MemoryDesc& image,
                              const MemoryDesc& weights, const MemoryDesc& output,
                              dnnl_alg_kind_t algorithm = dnnl_convolution_direct);

/// The kernel that makes these calls; weights in another layout than the implementation's are reordered inside.
std::unique_ptr<CallKernel> build_convolution(const Convolution& convolution, const PrimitiveDesc& main,
                                              const ConvolutionDescs& descs, const Request& request);
/// The operands in their own layouts; nullopt where oneDNN cannot describe one.
std::optional<ConvolutionDescs> describe_operands(const Convolution& convolution);
/// Of a fused_conv2d in these layouts; nullopt where make_fused_convolution() serves it.
std::optional<std::string> why_not_fused(const Convolution& convolution, const Engine& engine);
std::unique_ptr<Kernel> make_fused_convolution(const Request& request, std::string& why_not);

/// Winograd's algorithm F(4x4,3x3) (Lavin and Gray 2016), which multiplies a quarter as often as the direct one, where
/// oneDNN has it (f32, AVX-512) it was measured to be faster, and its workspace fits; else empty. Weights are in the
/// layout of the forward pass, in whatever pass.
PrimitiveDesc ask_winograd(const Engine& engine, const Convolution& convolution, const MemoryDesc& image,
                           const MemoryDesc& output);

/// The operand layouts on which oneDNN runs the node fastest. Layouts that the operands have already are kept where an
/// implementation made for the shape takes them; the weights' gradient gets the layout that the forward pass wants.
std::optional<LayoutChoice> preferred_convolution_layouts(const Convolution& convolution, const Engine& engine);

}  // namespace weft::onednn
