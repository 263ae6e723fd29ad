// The passes of inference: those rows of pipeline() that a graph without gradients, updates and ranks has use for. What
// runs inference alone links no others.
#pragma once

#include <vector>

#include "weft/passes/pipeline.h"

namespace weft::passes {

/// In the order of pipeline(), under the same names.
const std::vector<Pass>& inference_pipeline();

}  // namespace weft::passes
