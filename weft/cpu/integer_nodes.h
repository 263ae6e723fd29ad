// Keeps the kernels that are written for f32 and narrower types away from nodes on other numbers, which the reference
// serves: f64 and integers in arithmetic, packed elements everywhere.
#pragma once

#include <string>

#include "weft/device/kernel.h"

namespace weft {

/// Empty where any kernel may be asked for the node.
std::string why_reference(const NodeSignature& node);

/// Lets all candidates that are in the table decline those nodes.
void leave_integers_to_reference(KernelTable& table);

}  // namespace weft
