// weft keys: the reference of a recipe's keys, from their declarations.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/spec/key_reference.h"
#include "weft/spec/key_schema.h"

namespace weft::cli {

namespace {

struct KeysOptions {
  std::string name;
  bool json = false, schema = false, markdown = false;
};

nlohmann::ordered_json to_json(const Key& key) {
  nlohmann::ordered_json json = {
      {"key", key.name},  {"kind", kind_of(key)},   {"values", spec::values_of(key)},          {"unit", key.unit},
      {"help", key.help}, {"read_by", key.read_by}, {"may_be_auto", key.automatic.has_value()}};
  std::visit([&](const auto& value) { json["default"] = value; }, key.value);
  return json;
}

/// The key of that name, those of the table, or, for an empty name, all.
std::vector<spec::RecipeKey> chosen_keys(const Library& library, const std::string& name) {
  std::vector<spec::RecipeKey> all = spec::recipe_keys(library, {spec::kAnyGroup}), chosen;
  if (name.empty()) return all;
  std::vector<std::string> names;
  for (spec::RecipeKey& key : all) {
    names.push_back(key.name);
    if (key.name == name || key.name.starts_with(name + ".")) chosen.push_back(std::move(key));
  }
  if (chosen.empty()) fail(ErrorKind::usage, "there is no key '{}'{}", name, key_suggestion(name, names));
  return chosen;
}

int keys_command(const Library& library, const KeysOptions& options) {
  const std::vector<spec::RecipeKey> keys = chosen_keys(library, options.name);
  if (options.schema || options.markdown) {
    if (!options.name.empty()) fail(ErrorKind::usage, "--schema and --markdown are of all keys; leave NAME away");
    fmt::print("{}", options.schema ? spec::key_schema(keys) : spec::key_reference(keys));
    return 0;
  }
  auto rows = nlohmann::ordered_json::array();
  Table table({{"key"}, {"values"}, {"default"}, {"what it is for"}});
  for (const spec::RecipeKey& key : keys) {
    rows.push_back(to_json(key));
    const std::string readers = key.read_by.empty() ? "" : fmt::format(" (read by {})", fmt::join(key.read_by, ", "));
    table.add_row({key.name, spec::values_of(key), spec::default_of(key), key.help + readers});
  }
  fmt::print("{}", options.json ? rows.dump(2) + "\n" : table.text());
  return 0;
}

}  // namespace

void add_keys(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<KeysOptions>();
  CLI::App* command = app.add_subcommand("keys", "List the keys of a recipe, as a JSON Schema for editors, too");
  command->add_option("NAME", options->name, "Only this key, or the keys of this table, such as optimizer")
      ->type_name("KEY");
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  CLI::Option* schema =
      command->add_flag("--schema", options->schema, "Print a JSON Schema of recipes (draft 2020-12)")->excludes(json);
  command->add_flag("--markdown", options->markdown, "Print the page docs/recipe.md")->excludes(json)->excludes(schema);
  command->callback(
      [options, &action, &library] { action = [options, &library] { return keys_command(library, *options); }; });
}

}  // namespace weft::cli
