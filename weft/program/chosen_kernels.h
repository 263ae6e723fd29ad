// The kernels that a run chose by measured time, as its plan.json records them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "weft/device/device.h"

namespace weft::program {

/// The choices in all plans of a run. tuning_of_plan() (autotune.h) reads them back.
nlohmann::json chosen_kernels_json(const Device& device);
/// Throws what the parser throws for anything else.
KernelTimes kernel_times_from(const nlohmann::json& nodes);

}  // namespace weft::program
