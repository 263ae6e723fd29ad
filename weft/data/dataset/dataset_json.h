// What a data set says of itself, as JSON: for the records of runs and of packed data.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// All that training depends on; notes, facts and whether samples are decoded are left out. Error(usage) for an
/// encoding that is no JSON.
nlohmann::json to_json(const DatasetInfo& info);
/// Reverses it. Error(data) that begins with `name` for types and tasks that do not exist; nlohmann's exceptions for
/// what is missing.
DatasetInfo info_from_json(const nlohmann::json& root, const std::string& name);

}  // namespace weft::data
