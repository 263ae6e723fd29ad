// Reads a run directory back for inference: the spec, the data description and the weights.
#pragma once

#include <filesystem>
#include <string>

#include "weft/device/state.h"
#include "weft/spec/data_description.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

/// A finished or interrupted run, ready for inference.
struct LoadedRun {
  spec::RunSpec spec;
  spec::DataDescription data;
  State state;  // parameters and running statistics
  std::string checkpoint;
};
/// `which` is "last", "best", or "auto": the best where a validation part chose it, else the last. Skips damaged
/// checkpoints, with a line on stderr for each.
LoadedRun load_run(const std::filesystem::path& directory, const std::string& which, int64_t threads,
                   const Entries& entries = standard_entries());

}  // namespace weft::run
