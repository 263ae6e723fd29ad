// Whether what a recipe says of several ranks fits together: how they divide the work, and what each of them keeps.
#pragma once

#include "weft/spec/run_spec.h"

namespace weft::spec {

/// What must be so on any number of ranks. Error(usage) with the two keys of which one has to go, or the next step.
void check_ranks(const RunSpec& spec);

}  // namespace weft::spec
