// The kernels of inference: those of ops that only training has are left out.
#pragma once

#include "weft/device/kernel.h"
#include "weft/graph/op_def.h"

namespace weft {

/// For the ops of this registry (ops::make_inference_registry), in the order of standard_kernels().
KernelTable inference_kernels(const OpRegistry& registry);

}  // namespace weft
