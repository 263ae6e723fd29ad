// A RunSpec as a TOML file: the recipe that a user writes and the complete spec.toml of a run directory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weft/spec/run_spec.h"

namespace weft::spec {

/// Sets what the recipe names and leaves the rest of `spec` alone. `name` stands in messages: "recipe.toml:4: ...".
/// Error(usage) for what is no TOML, unknown keys, wrong kinds and values out of range.
void apply_recipe(RunSpec& spec, std::string_view text, const std::string& name,
                  const Entries& entries = standard_entries());

/// Error(io) where the file cannot be read.
void apply_recipe_file(RunSpec& spec, const std::filesystem::path& path, const Entries& entries = standard_entries());

/// A value as TOML has it.
std::string literal(const KeyValue& value);

/// Every key of a resolved spec, each with its help as a comment. Applying it to any spec gives a spec equal to this
/// one, but for model options that the other has and this one has not.
std::string print_recipe(const RunSpec& spec, const Entries& entries = standard_entries());

struct CommentedKey {
  std::string key;      // a key of a recipe, options of the model included
  std::string comment;  // text of any length
};
/// Only these keys, those of a table beside each other, each below its comment; `heading` becomes comments at the
/// beginning, a paragraph per line.
std::string print_recipe(const RunSpec& spec, const std::string& heading, const std::vector<CommentedKey>& keys,
                         const Entries& entries = standard_entries());

/// Of everything that decides the weights: all fields but the threads, the loader's, what is recorded and how often
/// to save. Fields at
/// their default leave no trace, so that a field that is new does not change the hash of older specs. Hexadecimal.
std::string spec_hash(const RunSpec& spec, const Entries& entries = standard_entries());

}  // namespace weft::spec
