// The rates by which a run is planned: the recipe's `cost_profile`. The first rank decides; all ranks use the same.
#pragma once

#include <memory>
#include <string>

#include "weft/comm/communicator.h"
#include "weft/device/cost_model.h"
#include "weft/library/library.h"

namespace weft::program {

inline constexpr const char* kDefaultProfile = "default";
inline constexpr const char* kMeasuredProfile = "measured";

struct CostProfile {
  std::string text;  // as a run directory keeps it; empty: the default profile
  std::shared_ptr<const CostModel> costs = rated_costs();
};

/// Measures the device with `threads` threads, in less than a second.
DeviceProfile measure_profile(const Library& library, int threads);

/// `choice` is kDefaultProfile, kMeasuredProfile or a file. Only the first rank measures and reads, and its choice
/// counts. Error(io) or Error(data) from reading the file reaches all ranks alike.
CostProfile agreed_profile(comm::Communicator* ranks, const Library& library, const std::string& choice, int threads);

/// The choice in a form that holds in any directory: a word, or a file with its absolute path.
std::string with_absolute_path(const std::string& choice);

/// The text of a profile that a run keeps, which ends as it was written. Error(data) naming file and line.
std::string read_kept_profile(const std::string& file);

}  // namespace weft::program
