// The recipe's keys as a JSON Schema (draft 2020-12), by which editors complete and check recipes while they are
// written. TOML's values are JSON's, but for nan and inf, which JSON has not got and no key takes.
#pragma once

#include <string>
#include <vector>

#include "weft/spec/recipe_keys.h"

namespace weft::spec {

/// What stands for the name of any group of parameters in the keys that are described.
inline const std::string kAnyGroup = "NAME";

/// JSON text. `keys`: those of recipe_keys(entries, {kAnyGroup}). It knows kinds, ranges, choices and names, not what
/// keys have to do with each other, which resolve() checks.
std::string key_schema(const std::vector<RecipeKey>& keys);

}  // namespace weft::spec
