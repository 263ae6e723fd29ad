// What `weft bench --plan-only` says about a step: its counted work, as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/plan/counted_work.h"

namespace weft::report {

/// Totals, then nodes per op and kernel, the most frequent first.
std::string work_table(const CountedWork& work);
nlohmann::ordered_json work_json(const CountedWork& work);

}  // namespace weft::report
