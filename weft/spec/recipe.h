// Reads and writes a RunSpec as TOML: the recipe of a user, or the complete spec.toml of a run directory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weft/spec/run_spec.h"

namespace weft::spec {

/// Sets the keys in the recipe and leaves the rest of `spec` alone. Messages begin with `name`: "recipe.toml:4: ...".
/// Error(usage) for invalid TOML, unknown keys, wrong kinds and values out of range.
void apply_recipe(RunSpec& spec, std::string_view text, const std::string& name,
                  const Entries& entries = standard_entries());

/// Error(io) where the file cannot be read.
void apply_recipe_file(RunSpec& spec, const std::filesystem::path& path, const Entries& entries = standard_entries());

/// The value in TOML syntax.
std::string literal(const KeyValue& value);

/// Every key of a resolved spec, each with its help as a comment. Applied to any spec, the text gives a spec equal to
/// `spec`, except for model options that only the other one has.
std::string print_recipe(const RunSpec& spec, const Entries& entries = standard_entries());

struct CommentedKey {
  std::string key;      // a key of a recipe, possibly a model option
  std::string comment;  // text of any length
};
/// Prints only these keys, grouped by table, each below its comment. `heading` becomes comments at the beginning, a
/// paragraph per line.
std::string print_recipe(const RunSpec& spec, const std::string& heading, const std::vector<CommentedKey>& keys,
                         const Entries& entries = standard_entries());

/// Hash, in hexadecimal, of everything that decides the weights: all fields except the threads, the loader's, what is
/// recorded and how often to save. Fields at their default do not enter it, so that a new field keeps the hash of older
/// specs.
std::string spec_hash(const RunSpec& spec, const Entries& entries = standard_entries());

}  // namespace weft::spec
