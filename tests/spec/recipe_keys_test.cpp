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
  set_from_text(spec, "optimizer.weight_decay=auto");
  EXPECT_EQ(spec, RunSpec());
}

TEST(RecipeKeys, AutoOfSomeKeysIsMeasuredBeforeTheFirstStep) {
  RunSpec spec;
  apply_recipe(spec, "batch = 'auto'\n[optimizer]\nlearning_rate = 'auto'\n[schedule]\nwarmup_steps = 'auto'\n",
               "recipe");
  EXPECT_TRUE(spec.measured.learning_rate);
  EXPECT_TRUE(spec.measured.batch);
  EXPECT_TRUE(spec.measured.warmup_steps);
  EXPECT_EQ(spec.batch, RunSpec().batch);
}

TEST(RecipeKeys, WhatIsLeftToAMeasurementIsPrintedAsSuch) {
  RunSpec spec;
  spec.model.name = "lenet5";
  set_from_text(spec, "optimizer.learning_rate=auto");
  set_from_text(spec, "schedule.warmup_steps=auto");
  resolve(spec);
  RunSpec read;
  apply_recipe(read, print_recipe(spec), "recipe");
  resolve(read);
  EXPECT_EQ(read, spec);
}

TEST(RecipeKeys, ANumberTakesThePlaceOfAuto) {
  RunSpec spec;
  set_from_text(spec, "optimizer.learning_rate=auto");
  set_from_text(spec, "optimizer.learning_rate=0.1");
  EXPECT_FALSE(spec.measured.any());
}

TEST(RecipeKeys, ReferenceIsWhatTheDeclarationsSay) {
  EXPECT_EQ(read_text(WEFT_SOURCE_DIR "/docs/recipe.md"), key_reference(recipe_keys(standard_entries(), {kAnyGroup})))
      << "make it anew: build/weft keys --markdown > docs/recipe.md";
}

TEST(RecipeKeys, SchemaHasEachKeyAtItsPlace) {
  const auto schema = nlohmann::json::parse(key_schema(recipe_keys(standard_entries(), {kAnyGroup})));
  EXPECT_EQ(schema["properties"]["accumulate"]["type"], "integer");
  EXPECT_EQ(schema["properties"]["batch"]["anyOf"][0]["maximum"], 65536);
  const auto& optimizer = schema["properties"]["optimizer"];
  EXPECT_EQ(optimizer["properties"]["learning_rate"]["anyOf"][0]["exclusiveMinimum"], 0);
  EXPECT_EQ(optimizer["additionalProperties"], false);
  const auto& group = optimizer["properties"]["groups"]["patternProperties"]["^[A-Za-z0-9_-]+$"];
  EXPECT_EQ(group["properties"]["match"]["type"], "string");
}

}  // namespace
}  // namespace weft::spec
