// The layouts that weft's own kernels of a convolution's weights' gradient wish for.
#pragma once

#include "weft/device/kernel.h"

namespace weft {

/// Lets each candidate for that gradient which stands before oneDNN's keep the operands as they are, where it serves
/// them so, and store the gradient as the forward convolution has its weights.
void add_kept_layouts(KernelTable& table);

}  // namespace weft
