// weft keys: the reference of a recipe's keys, from their declarations.
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/spec/key_reference.h"
#include "weft/spec/key_schema.h"
#include "weft/spec/usual_names.h"

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

bool is_glob(const std::string& pattern) { return pattern.find_first_of("*?[") != pattern.npos; }

/// The key of that name, those of the table, or else those whose names match the pattern or hold it as a part; a name
/// that people know from other programs is answered with weft's. For an empty pattern, all.
std::vector<spec::RecipeKey> chosen_keys(const Library& library, const std::string& pattern) {
  const std::vector<spec::RecipeKey> all = spec::recipe_keys(library, {spec::kAnyGroup});
  if (pattern.empty()) return all;
  std::vector<std::string> names;
  for (const spec::RecipeKey& key : all) names.push_back(key.name);
  const std::string usual = is_glob(pattern) ? "" : spec::key_of_usual_name(pattern, names);
  const std::function<bool(const std::string&)> choices[] = {
      [&](const std::string& name) { return name == pattern || name.starts_with(pattern + "."); },
      [&](const std::string& name) { return name == usual; },
      [&](const std::string& name) {
        return is_glob(pattern) ? fnmatch(pattern.c_str(), name.c_str(), 0) == 0 : name.find(pattern) != name.npos;
      }};
  for (const auto& is_chosen : choices) {
    std::vector<spec::RecipeKey> chosen;
    for (const spec::RecipeKey& key : all)
      if (is_chosen(key.name)) chosen.push_back(key);
    if (chosen.empty()) continue;
    if (&is_chosen == &choices[1]) say(fmt::format("'{}' is called '{}' here", pattern, usual));
    return chosen;
  }
  const std::string near = nearest_name(pattern, names);
  fail(ErrorKind::usage, "there is no key '{}'{}; `weft keys` lists all", pattern,
       near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

int keys_command(const Library& library, const KeysOptions& options) {
  const std::vector<spec::RecipeKey> keys = chosen_keys(library, options.name);
  if (options.schema || options.markdown) {
    if (!options.name.empty()) fail(ErrorKind::usage, "--schema and --markdown are of all keys; leave PATTERN away");
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
  command
      ->add_option(
          "PATTERN", options->name,
          "Only this key, those of this table, such as optimizer, or those whose names match, such as '*rate*' or rate")
      ->type_name("KEY");
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  CLI::Option* schema =
      command->add_flag("--schema", options->schema, "Print a JSON Schema of recipes (draft 2020-12)")->excludes(json);
  command->add_flag("--markdown", options->markdown, "Print the page docs/recipe.md")->excludes(json)->excludes(schema);
  command->callback(
      [options, &action, &library] { action = [options, &library] { return keys_command(library, *options); }; });
}

}  // namespace weft::cli
