// Documents the declared keys: a line for each, and the page docs/recipe.md.
#pragma once

#include <string>
#include <vector>

#include "weft/spec/recipe_keys.h"

namespace weft::spec {

/// "a number from 0 to 1, or auto", "zero, reflect"
std::string values_of(const Key& key);

/// The default as a recipe writes it: auto, 0.9, "cosine".
std::string default_of(const Key& key);

/// The help of a flag that sets this key: "Samples per step; from 1 to 65536; default: 128".
std::string flag_help(const std::string& name);

/// Markdown with a table for each section. `keys`: the result of recipe_keys(entries, {kAnyGroup}).
std::string key_reference(const std::vector<RecipeKey>& keys);

}  // namespace weft::spec
