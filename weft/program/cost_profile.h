// By whose rates a run is planned: the recipe's `cost_profile`, decided by the first rank, the same on all of them.
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

/// What the device can do on so many threads, in less than a second.
DeviceProfile measure_profile(const Library& library, int threads);

/// `choice`: kDefaultProfile, kMeasuredProfile or a file, of the first rank, which alone measures and reads. Error(io)
/// or Error(data) as reading the file gives, on all ranks alike.
CostProfile agreed_profile(comm::Communicator* ranks, const Library& library, const std::string& choice, int threads);

/// The choice, from wherever it is read: a word, or the file with its whole path.
std::string with_absolute_path(const std::string& choice);

/// The text of a profile that a run keeps, which ends as it was written. Error(data) naming file and line.
std::string read_kept_profile(const std::string& file);

}  // namespace weft::program
