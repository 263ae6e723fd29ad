// How a run chooses kernels: by weft's own order, or by measurements on this machine.
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

/// Skips a cache file that cannot be used, with a line to `note`.
Tuning tuning_of(const DeviceKind& kind, Autotune autotune, int64_t threads, const Note& note);

/// Saves the measurements for later programs and reports on them. Does nothing where nothing was measured.
void keep_measured(const DeviceKind& kind, const Device& device, const Note& note);

/// The kernel choices of a resumed or inspected run, from its plan.json (see chosen_kernels.h): its results do not
/// depend on what was measured since.
Tuning tuning_of_plan(const std::filesystem::path& plan, const Note& note);

}  // namespace weft::program
