// Kernels written as functions: the shortest way to a kernel of one's own.
#pragma once

#include <functional>
#include <string>

#include "weft/device/kernel.h"

namespace weft {

/// One call. What it needs beyond its arguments was computed when it was made: it must neither allocate nor throw.
using KernelBody = std::function<void(const KernelArguments&)>;
/// Makes the body for one signature: reads shapes and attributes there, once.
using PrepareKernel = std::function<KernelBody(const NodeSignature&, const KernelOptions&)>;

/// Which operands a kernel takes; it declines all others.
struct OperandRules {
  bool any_layout = false;    // else row-major ones only
  bool any_floating = false;  // else, of the floating types, f32 only
};

/// `name` is what `weft explain` shows.
KernelFactory function_kernel(std::string name, PrepareKernel prepare, const OperandRules& rules = {});

}  // namespace weft
