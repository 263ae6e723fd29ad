// Arithmetic on f64, integers and booleans.
#pragma once

#include "weft/device/function_kernel.h"

namespace weft::reference {

/// Whether the elementwise node computes on something else than f32, bf16 and f16, and 32-bit integers that are
/// compared.
bool is_typed(const NodeSignature& node);

/// The kernel of such a node, on plain operands. Integers wrap around; what is divided by 0 is 0.
KernelBody prepare_typed(const NodeSignature& node);

}  // namespace weft::reference
