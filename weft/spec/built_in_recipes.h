// The recipes that come with weft: the files of recipes/ at build time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::spec {

struct BuiltInRecipe {
  std::string name;  // the file name without ".toml"
  std::string text;  // TOML; begins with comments that state its purpose and result

  /// The comments at the beginning, as one paragraph.
  std::string description() const;
};

/// Sorted by name. Defined in a file that cmake/WeftRecipes.cmake makes.
const std::vector<BuiltInRecipe>& built_in_recipes();

/// "; did you mean 'x'?" for an unknown name.
std::string suggest_recipe(std::string_view name);

/// Null where no recipe has this name.
const BuiltInRecipe* find_built_in_recipe(std::string_view name);

}  // namespace weft::spec
