// A plan as JSON: plan.json of a run directory.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "weft/plan/plan.h"

namespace weft {

nlohmann::json to_json(const Plan& plan, const Graph& graph);

}  // namespace weft
