// One start of the ranks through mpirun, to its end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/launch/launch_hosts.h"
#include "weft/launch/launch_reports.h"

namespace weft::launch {

struct LaunchedJob {
  int ranks = 1;
  std::vector<HostSlots> hosts;    // exactly as many slots; empty: this host
  std::vector<std::string> words;  // the program with its arguments
};

struct JobEnd {
  int code = 0;                  // 128 and a signal's number where mpirun or a rank was killed
  bool launcher_killed = false;  // mpirun itself
  std::optional<LostRank> lost = {};
  bool was_deserted = false;   // all ranks of this host had ended, and mpirun, which went on, was ended
  std::string unstarted = {};  // which rank mpirun could not start, and why; the code is then one of mpirun's own
};

/// Runs it until no rank of this host is left. What asks this program to stop (`interrupted`) is handed to one of the
/// ranks, which tells the others, or through mpirun to all where all are on other hosts: they end after the same step
/// with a checkpoint. Where a rank was lost, the ranks of this host have ended, or a host cannot be reached, and mpirun
/// goes on waiting, it is ended.
JobEnd run_job(const LaunchedJob& job, const std::function<bool()>& interrupted);

}  // namespace weft::launch
