// Matrix products and layout changes on oneDNN.
#pragma once

#include <memory>
#include <string>

#include "weft/runtime/onednn/call_kernel.h"

namespace weft::onednn {

/// Plain operands; transposition and broadcasting are strides.
std::unique_ptr<Kernel> make_matmul(const NodeSignature& node, const KernelOptions& options,
                                    const std::shared_ptr<const Engine>& engine, std::string& why_not);

/// Between any two layouts of one tensor.
std::unique_ptr<Kernel> make_reorder(const NodeSignature& node, const KernelOptions& options,
                                     const std::shared_ptr<const Engine>& engine, std::string& why_not);

}  // namespace weft::onednn
