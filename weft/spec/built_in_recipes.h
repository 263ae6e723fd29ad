// The recipes that come with weft: the files of recipes/, as they were when weft was built.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::spec {

struct BuiltInRecipe {
  std::string name;  // the file's, without ".toml"
  std::string text;  // TOML; begins with comments that say what it is for and what it reaches

  /// The comments at its beginning, as one paragraph.
  std::string description() const;
};

/// In the order of their names. Defined in a file that cmake/WeftRecipes.cmake makes.
const std::vector<BuiltInRecipe>& built_in_recipes();

/// "; did you mean 'x'?" for a name that none of them has.
std::string suggest_recipe(std::string_view name);

/// Null where there is none of that name.
const BuiltInRecipe* find_built_in_recipe(std::string_view name);

}  // namespace weft::spec
