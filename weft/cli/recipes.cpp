// weft recipes: those that come with weft, and what they reach.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/spec/built_in_recipes.h"
#include "weft/spec/recipe.h"

namespace weft::cli {

namespace {

struct RecipesOptions {
  std::string name;
  bool json = false;
};

int recipes_command(const Library& library, const RecipesOptions& options) {
  const std::vector<spec::BuiltInRecipe>& recipes = spec::built_in_recipes();
  if (!options.name.empty()) {
    const spec::BuiltInRecipe* recipe = spec::find_built_in_recipe(options.name);
    if (recipe == nullptr)
      fail(ErrorKind::usage, "there is no recipe '{}'{}", options.name, spec::suggest_recipe(options.name));
    fmt::print("{}", recipe->text);
    return 0;
  }
  Table table({{"recipe"}, {"model"}, {"data"}, {"what it is for"}});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const spec::BuiltInRecipe& recipe : recipes) {
    spec::RunSpec spec;
    spec::apply_recipe(spec, recipe.text, recipe.name, library);
    table.add_row({recipe.name, spec.model.name, spec.data, recipe.description()});
    rows.push_back({{"recipe", recipe.name},
                    {"model", spec.model.name},
                    {"data", spec.data},
                    {"description", recipe.description()}});
  }
  if (options.json)
    fmt::print("{}\n", rows.dump(2));
  else
    fmt::print("{}\n`weft train NAME` runs one, `weft recipes NAME > FILE.toml` makes it yours.\n", table.text());
  return 0;
}

}  // namespace

void add_recipes(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<RecipesOptions>();
  CLI::App* command = app.add_subcommand("recipes", "List the recipes that come with weft, or print one");
  command->add_option("NAME", options->name, "Print this recipe")->type_name("RECIPE");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return recipes_command(library, *options); }; });
}

}  // namespace weft::cli
