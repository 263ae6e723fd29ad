// What plans need to know of a recipe whose data are here.
#pragma once

#include "weft/predict/planned_run.h"
#include "weft/program/run_data.h"

namespace weft::predict {

/// Of a resolved recipe. Without what making a sample takes, which must be measured (loading.h).
PlannedModel planned_model(const Library& library, const spec::RunSpec& spec, const program::RunData& data);

}  // namespace weft::predict
