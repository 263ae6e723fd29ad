// Where the ranks of a job may run, and what is left of it after a start that has lost one.
#pragma once

#include <string>
#include <vector>

#include "weft/launch/launch_hosts.h"
#include "weft/launch/launch_job.h"

namespace weft::launch {

/// Without hosts it is this one, which takes any number of ranks.
struct RankRoom {
  std::vector<HostSlots> hosts;
  int slots = 1;

  /// Leaves out hosts that cannot be reached, and says so.
  void leave_out_unreachable();
  /// After a start that had placed its ranks so.
  void take_away(const JobEnd& end, const std::vector<HostSlots>& placed);
};

/// Of hosts as `--hosts` names them, or those of the Slurm job around, or this one. Error(usage) for one that cannot be
/// reached. Where there are fewer slots than ranks, the hosts take more.
RankRoom find_room(const std::string& hosts, int ranks);

/// Whether a rank was killed, or found by the others to be gone; not where the training itself has failed, or mpirun
/// could not start it.
bool lost_a_rank(const JobEnd& end);
/// "rank 1 on host 'b' was lost (exit code 137)"
std::string describe(const JobEnd& end);

}  // namespace weft::launch
