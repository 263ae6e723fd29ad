// The recipes that come with weft can be run: each is a graph of a training step and one of an evaluation, whatever
// data there are.
#include "weft/spec/built_in_recipes.h"

#include <gtest/gtest.h>

#include <map>

#include "weft/data/dataset/data_spec.h"
#include "weft/library/library.h"
#include "weft/spec/recipe.h"
#include "weft/step/step.h"

namespace weft::spec {
namespace {

data::TargetKind targets_of(const std::string& kind) {
  const std::map<std::string, data::TargetKind> targets = {{"pairs", data::TargetKind::sequence},
                                                           {"lines", data::TargetKind::text},
                                                           {"text", data::TargetKind::next_tokens},
                                                           {"masks", data::TargetKind::pixel_classes}};
  const auto found = targets.find(kind);
  return found == targets.end() ? data::TargetKind::sample_class : found->second;
}

/// What the model reads of data such as the recipe names. Tables and texts say only when they are read how wide they
/// are and what they hold.
models::ModelInput input_of(const std::string& data, int64_t batch) {
  const data::DataSpec spec = data::parse_data_spec(data);
  std::map<std::string, std::string> options(spec.options.begin(), spec.options.end());
  const auto number = [&](const char* name, int64_t fallback) {
    return options.contains(name) ? std::stoll(options[name]) : fallback;
  };
  const int64_t size = number("size", 128);
  const std::map<std::string, models::ModelInput> inputs = {
      {"fashion-mnist", {.batch = batch, .shape = {1, 28, 28}, .classes = 10, .target = DType::i32}},
      {"cifar10", {.batch = batch, .shape = {3, 32, 32}, .classes = 10, .target = DType::i32}},
      {"images", {.batch = batch, .shape = {number("channels", 3), size, size}, .classes = 10, .target = DType::i32}},
      {"csv", {.batch = batch, .shape = {64}, .classes = 10, .target = DType::i32}},
      {"pairs", {.batch = batch, .shape = {24}, .classes = 40, .target = DType::i32, .source = 12}},
      {"lines", {.batch = batch, .shape = {1, 32, 128}, .classes = 11, .target = DType::i32, .text_length = 6}},
      {"text", {.batch = batch, .shape = {number("length", 128)}, .classes = 65, .target = DType::i32}}};
  const auto found = inputs.find(spec.kind);
  if (found == inputs.end()) {
    ADD_FAILURE() << "say here what samples of '" << spec.kind << "' look like";
    return {.batch = batch, .shape = {}};
  }
  return found->second;
}

TEST(BuiltInRecipes, CanAllBeRun) {
  ASSERT_GE(built_in_recipes().size(), 5u);
  const Library library = standard_library();
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    SCOPED_TRACE(recipe.name);
    RunSpec spec;
    ASSERT_NO_THROW(apply_recipe(spec, recipe.text, recipe.name));
    ASSERT_NO_THROW(resolve(spec));
    EXPECT_FALSE(recipe.description().empty());
    const models::ModelInput input = input_of(spec.data, spec.batch);
    const step::TrainingStep step = step::build_training_step(library, spec, input);
    EXPECT_FALSE(step.slots.empty());
    EXPECT_TRUE(step::has_output(step.graph, "loss"));
    EXPECT_TRUE(step::has_output(step::build_evaluation_step(library, spec, input), "loss_sum"));
    EXPECT_TRUE(keys_without_effect(spec, targets_of(data::parse_data_spec(spec.data).kind)).empty());
  }
}

}  // namespace
}  // namespace weft::spec
