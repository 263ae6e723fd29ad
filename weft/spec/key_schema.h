// The recipe's keys as a JSON Schema (draft 2020-12), by which editors complete and check recipes. TOML's values are
// those of JSON, except nan and inf, which no key takes.
#pragma once

#include <string>
#include <vector>

#include "weft/spec/recipe_keys.h"

namespace weft::spec {

/// Stands for the name of any parameter group in described keys.
inline const std::string kAnyGroup = "NAME";

/// JSON text. `keys`: the result of recipe_keys(entries, {kAnyGroup}). The schema knows kinds, ranges, choices and
/// names, but no relations between keys; resolve() checks those.
std::string key_schema(const std::vector<RecipeKey>& keys);

}  // namespace weft::spec
