// What failures and interruptions add to a run.
#pragma once

#include <cstdint>

#include "weft/machines/cluster_file.h"

namespace weft::planner {

struct Restarts {
  double mean_seconds_between = 0;  // failures of any host that takes part; 0: none are rated
  double checkpoint_seconds = 0;    // to write one
  double interval_seconds = 0;      // from one checkpoint to the next, the best there is; 0: none is needed
  double factor = 1;                // of the run's own time, checkpoints, lost work and restarts included
  double expected = 0;              // how many
};

/// Of a run of `seconds` on so many hosts, whose checkpoints hold `state_bytes` in all, written by all hosts at once
/// where `shared`, else by one. The interval is Young's, sqrt(2 d M) (1974), and the time that of Daly (2006, equation
/// 20): M e^(R/M) (e^((t+d)/M) - 1) T/t, with M the mean time between failures, R that of a restart, d that of a
/// checkpoint and t the interval.
Restarts restarts_of(const machines::ClusterFile& cluster, int64_t hosts, bool spot, double seconds, double state_bytes,
                     bool shared);

}  // namespace weft::planner
