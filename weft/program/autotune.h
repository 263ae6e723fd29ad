// How kernels of a run are chosen: by the order that weft knows, or by what was measured on this machine.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "weft/device/device_kind.h"

namespace weft::program {

inline constexpr const char* kAutotuneHelp =
    "measure: each node runs the kernel that is the fastest here, measured once and kept; cached: where that is known";

using Note = std::function<void(const std::string& line)>;

enum class Autotune {
  off,      // the first candidate serves
  cached,   // the fastest where that is known from before
  measure,  // the same, and what is not known is measured
};
/// "cached"; Error(usage) for anything else.
Autotune parse_autotune(const std::string& text);

/// A cache file that cannot be used is named in a line to `note` and done without.
Tuning tuning_of(const DeviceKind& kind, Autotune autotune, int64_t threads, const Note& note);

/// Keeps what was measured for later programs, and says what came of it. Nothing where nothing was measured.
void keep_measured(const DeviceKind& kind, const Device& device, const Note& note);

/// The choices of a run that goes on, or is looked at, from its plan.json (see chosen_kernels.h): what it computes then
/// does not depend on what was measured since.
Tuning tuning_of_plan(const std::filesystem::path& plan, const Note& note);

}  // namespace weft::program
