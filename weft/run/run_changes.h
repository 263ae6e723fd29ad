// What may change in the recipe of a run that goes on: `weft train --resume RUN --epochs 12`. The optimiser keeps its
// state. changes.jsonl in the run directory has a line for each time:
//   {"step":780,"changes":[{"key":"epochs","from":"30","to":"40"}],"from":"HASH","to":"HASH"}
// The hashes are those of the recipes (spec_hash()), by which a checkpoint that was made before a change is recognised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/library/entries.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

struct KeyChange {
  std::string key, from, to;
};

/// Keys that may change, as names or as tables: "epochs", "stop.*".
const std::vector<std::string>& changeable_keys();
bool is_changeable(const std::string& key);

/// Whether a finished run may go on after this key has changed; else it decides only how steps are computed and kept.
bool can_extend(const std::string& key);

/// Applies assignments such as "epochs=12", and resolves the spec again. The keys that differ afterwards. Error(usage)
/// where a key may not change; it says what to do instead. `run` is the directory, for that message.
std::vector<KeyChange> change_spec(spec::RunSpec& spec, const std::vector<std::string>& assignments,
                                   const std::filesystem::path& run, const Entries& entries);

/// Appends a line to the file of changes, and makes sure that it survives a power cut. Error(io).
void append_changes(const std::filesystem::path& file, int64_t step, const std::vector<KeyChange>& changes,
                    const std::string& from_hash, const std::string& to_hash);

/// Whether changes that the file lists led from the recipe of one hash to that of the other.
bool changes_lead(const std::filesystem::path& file, const std::string& from_hash, const std::string& to_hash);

}  // namespace weft::run
