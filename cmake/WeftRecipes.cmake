# recipes/*.toml as texts inside the library, so that an installed weft has them too.
file(GLOB recipe_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/recipes/*.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recipe_files})
set(recipe_entries "")
foreach(file ${recipe_files})
  cmake_path(GET file STEM name)
  file(READ ${file} text)
  string(APPEND recipe_entries "      {\"${name}\", R\"recipe(${text})recipe\"},\n")
endforeach()
set(recipe_source ${CMAKE_CURRENT_BINARY_DIR}/generated/built_in_recipes.cpp)
file(CONFIGURE OUTPUT ${recipe_source} @ONLY CONTENT [[
// Made by cmake/WeftRecipes.cmake from recipes/*.toml.
#include "weft/spec/built_in_recipes.h"

namespace weft::spec {

const std::vector<BuiltInRecipe>& built_in_recipes() {
  static const std::vector<BuiltInRecipe> recipes{
@recipe_entries@  };
  return recipes;
}

}  // namespace weft::spec
]])
target_sources(weft_setup PRIVATE ${recipe_source})
