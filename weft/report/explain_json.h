// What `weft explain --json` prints.
#pragma once

#include <nlohmann/json.hpp>

#include "weft/report/explained.h"

namespace weft::report {

/// All of it, every node and pass included.
nlohmann::ordered_json explained_json(const Explained& explained);
/// The memory of its plan.
nlohmann::ordered_json memory_json(const Explained& explained);

}  // namespace weft::report
