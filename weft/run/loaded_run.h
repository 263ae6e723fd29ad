// What a run left behind, read back for inference: its spec, what it knows of its data, its weights.
#pragma once

#include <filesystem>
#include <string>

#include "weft/device/state.h"
#include "weft/spec/data_description.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

/// What a finished or cut-off run left behind, ready for inference.
struct LoadedRun {
  spec::RunSpec spec;
  spec::DataDescription data;
  State state;  // parameters and running statistics
  std::string checkpoint;
};
/// `which` is "last" or "best". Damaged checkpoints are left out with a line on stderr.
LoadedRun load_run(const std::filesystem::path& directory, const std::string& which, int64_t threads,
                   const Entries& entries = standard_entries());

}  // namespace weft::run
