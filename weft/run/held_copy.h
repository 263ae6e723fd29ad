// What one host holds of a run: the files that weft writes, and which checkpoints are whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weft/run/checkpoint/file_records.h"

namespace weft::run {

/// The newest whole checkpoint in a run directory.
struct NewestCheckpoint {
  bool has_run = false;                   // there is a spec.toml
  uint32_t recipe = 0;                    // its checksum
  int64_t step = -1;                      // -1: none is whole
  std::optional<int64_t> best = {};       // the step of the best one, as that checkpoint has it
  std::vector<std::string> damaged = {};  // newer ones that are not whole, and why
};

NewestCheckpoint find_newest(const std::filesystem::path& directory);
/// The files of the checkpoint of that step, its manifest among them; empty where it is absent or not whole.
FileRecords checkpoint_files(const std::filesystem::path& directory, int64_t step);
/// What else weft writes into a run directory, by paths in it. A user's own files are not among them.
FileRecords other_files(const std::filesystem::path& directory);

/// Whether two checkpoints hold the same tensors. Their manifests may differ in times.
bool same_tensors(const FileRecords& a, const FileRecords& b);

// Between ranks.
std::string print(const NewestCheckpoint& newest);
NewestCheckpoint parse_newest(const std::string& text);

}  // namespace weft::run
