// Where a run stands before its next step: the state with the manifest that belongs to it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "weft/device/state.h"
#include "weft/program/prepared_run.h"
#include "weft/run/checkpoint/manifest.h"

namespace weft::run {

struct ResumePoint {
  State state;
  Manifest manifest;
};

/// From the checkpoint, or, where the path is empty, from the first step. Of several ranks, all of which call it, the
/// first one reads files, and the others take its state over; what the seed draws each draws for itself.
ResumePoint resume_point_of(const program::PreparedRun& run, const std::filesystem::path& checkpoint,
                            const std::function<void(const std::string&)>& note);

}  // namespace weft::run
