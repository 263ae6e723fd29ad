// weft plan with a deadline or a budget: which machines, how many, which strategy.
#pragma once

#include "weft/cli/planned_model.h"

namespace weft::cli {

int search_plans(const Library& library, const PlanOptions& options);

}  // namespace weft::cli
