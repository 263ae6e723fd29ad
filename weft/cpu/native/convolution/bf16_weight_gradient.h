// conv2d_backward_weights of images in bf16, where the processor has AVX512_BF16.
#pragma once

#include <memory>
#include <string>

#include "weft/base/isa.h"
#include "weft/device/kernel.h"

namespace weft::native {

/// Null, with the reason, where it cannot serve the node.
std::unique_ptr<Kernel> make_bf16_weight_gradient(const NodeSignature& node, int threads, Isa isa,
                                                  std::string& why_not);

}  // namespace weft::native
