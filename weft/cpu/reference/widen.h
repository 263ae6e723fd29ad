// Reference kernels for types narrower than f32: operands are widened, the f32 reference runs, results are rounded.
#pragma once

#include "weft/device/kernel.h"

namespace weft::reference {

/// The factory `make`, which also serves nodes with operands or results of bf16 and f16: by the kernel that it makes
/// for the same node in f32, on widened copies in the workspace. For kernels on plain layouts.
KernelFactory with_narrow_types(KernelFactory make);

}  // namespace weft::reference
