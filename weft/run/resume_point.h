// Where a run continues: the state before its next step, with the manifest that belongs to it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "weft/device/state.h"
#include "weft/program/prepared_run.h"
#include "weft/run/checkpoint/manifest.h"
#include "weft/run/initial_weights.h"

namespace weft::run {

struct ResumePoint {
  State state;
  Manifest manifest;
  std::optional<InitialWeights> initial_weights;  // on the first rank, of a run that starts from a file
};

struct PartsOfCheckpoint {
  State state;
  Manifest manifest;
};

/// Of ranks that share states: each gets its parts, one tensor after the other, so that none holds more than one whole
/// tensor. All call it; the first rank reads the files, and the path of others does not matter.
PartsOfCheckpoint read_in_parts(const program::PreparedRun& run, const std::filesystem::path& checkpoint);

/// Reads the checkpoint; an empty path gives the state before the first step. With several ranks, all call it: the
/// first rank reads the files, and the others receive its state. Each rank draws what the seed decides for itself.
ResumePoint resume_point_of(const program::PreparedRun& run, const std::filesystem::path& checkpoint);

}  // namespace weft::run
