// What [optimizer] leaves open, by the entry that it names.
#pragma once

#include "weft/spec/run_spec.h"

namespace weft::spec {

/// Error(usage) for an optimiser that there is not, and for groups that match nothing.
void resolve_optimizer(OptimizerSpec& optimizer, const Entries& entries);

}  // namespace weft::spec
