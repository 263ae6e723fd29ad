// The declarations of keys: complete, and what follows from them.
#include "weft/spec/recipe_keys.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/files.h"
#include "weft/spec/key_reference.h"
#include "weft/spec/key_schema.h"
#include "weft/spec/recipe.h"

namespace weft::spec {
namespace {

TEST(RecipeKeys, EachIsDeclaredOnceWithHelpAndADefaultInItsRange) {
  std::set<std::string> names;
  for (const RecipeKey& key : recipe_keys(standard_entries(), {kAnyGroup})) {
    SCOPED_TRACE(key.name);
    EXPECT_TRUE(names.insert(key.name).second) << "declared twice";
    EXPECT_FALSE(key.help.empty());
    const bool is_open = key.name == "model.name" || key.name.ends_with("data");  // which a recipe has to say
    const bool is_automatic = key.automatic && *key.automatic == key.value;
    if (!is_open && !is_automatic) {
      EXPECT_NO_THROW(checked_value(key, key.value, "default"));
    }
    EXPECT_EQ(key.automatic.value_or(key.value).index(), key.value.index());
  }
}

TEST(RecipeKeys, AutoIsWhatARecipeHasThatLeavesTheKeyAway) {
  RunSpec spec;
  set_from_text(spec, "threads=3");
  set_from_text(spec, "optimizer.momentum=0.5");
  apply_recipe(spec, "threads = 'auto'\n[optimizer]\nmomentum = 'auto'\n", "recipe");
  set_from_text(spec, "optimizer.learning_rate=auto");
  EXPECT_EQ(spec, RunSpec());
}

TEST(RecipeKeys, ReferenceIsWhatTheDeclarationsSay) {
  EXPECT_EQ(read_text(WEFT_SOURCE_DIR "/docs/recipe.md"), key_reference(recipe_keys(standard_entries(), {kAnyGroup})))
      << "make it anew: build/weft keys --markdown > docs/recipe.md";
}

TEST(RecipeKeys, SchemaHasEachKeyAtItsPlace) {
  const auto schema = nlohmann::json::parse(key_schema(recipe_keys(standard_entries(), {kAnyGroup})));
  EXPECT_EQ(schema["properties"]["batch"]["type"], "integer");
  EXPECT_EQ(schema["properties"]["batch"]["maximum"], 65536);
  const auto& optimizer = schema["properties"]["optimizer"];
  EXPECT_EQ(optimizer["properties"]["learning_rate"]["anyOf"][0]["exclusiveMinimum"], 0);
  EXPECT_EQ(optimizer["additionalProperties"], false);
  const auto& group = optimizer["properties"]["groups"]["patternProperties"]["^[A-Za-z0-9_-]+$"];
  EXPECT_EQ(group["properties"]["match"]["type"], "string");
}

}  // namespace
}  // namespace weft::spec
