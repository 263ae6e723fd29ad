// How long kernels take for one node, side by side.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/device/kernel.h"

namespace weft {

/// Seconds of the fastest of several calls of each kernel, in their order, on operands of their own; infinite where a
/// kernel fails. Calls take turns, so that what else the machine does meets all alike, until the two fastest of each
/// agree; after `most_seconds`, or enough rounds, no new round begins. A kernel that is far behind is left out of later
/// rounds.
std::vector<double> measure_kernels(std::span<const std::unique_ptr<Kernel>> kernels, const NodeSignature& node,
                                    double most_seconds);

}  // namespace weft
