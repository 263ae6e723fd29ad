#include "weft/spec/built_in_recipes.h"

#include <sstream>

#include "weft/base/names.h"

namespace weft::spec {

std::string BuiltInRecipe::description() const {
  std::istringstream lines(text);
  std::string paragraph;
  for (std::string line; std::getline(lines, line) && line.starts_with("# ");) {
    if (!paragraph.empty()) paragraph += ' ';
    paragraph += line.substr(2);
  }
  return paragraph;
}

std::string suggest_recipe(std::string_view name) {
  std::vector<std::string> names;
  for (const BuiltInRecipe& known : built_in_recipes()) names.push_back(known.name);
  return suggestion(name, names);
}

const BuiltInRecipe* find_built_in_recipe(std::string_view name) {
  for (const BuiltInRecipe& recipe : built_in_recipes())
    if (recipe.name == name) return &recipe;
  return nullptr;
}

}  // namespace weft::spec
