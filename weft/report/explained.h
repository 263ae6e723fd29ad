// A run's training step with what was measured of it, as `weft explain` shows it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/device/machine_rates.h"
#include "weft/program/planned_step.h"
#include "weft/report/comm_report.h"
#include "weft/report/memory_timeline.h"
#include "weft/report/op_profile.h"

namespace weft::report {

/// By the names of nodes whose kernel was measured beside others: the times, that of the chosen kernel first.
using Measured = std::map<std::string, std::vector<KernelTime>>;

/// One mean of the ranks' states.
struct Averaging {
  int64_t period = 0;         // steps from one to the next, at most
  int64_t states_every = 1;   // of so many one is of all states, the others of the weights alone
  double seconds = 0;         // of the one
  double weight_seconds = 0;  // of each of the others
  std::vector<CollectiveProfile> collectives = {};
};

/// Compiled here and timed on synthetic batches. Keep the plan alive.
struct Explained {
  const CompiledStep* compiled = nullptr;
  std::string costs = {};                // where the figures are from by which it was planned
  const CompiledStep* update = nullptr;  // where batches are accumulated; else null
  int64_t batches = 1;                   // per step
  MachineRates rates = {};
  std::vector<OpProfile> nodes = {};
  double step_seconds = 0, floor_seconds = 0;
  std::vector<LiveTensor> at_peak = {};
  Measured measured = {};
  std::vector<CollectiveProfile> collectives = {};  // of one rank of several
  std::optional<Averaging> averaging = {};          // of ranks that train apart
};

/// Of the plan alone: no step runs.
Explained explain_plan(program::PlannedStep& planned);
/// Times the steps and takes the median of each node's time over `steps` steps. All ranks call it together; each gets
/// its own `collectives`.
Explained explain_steps(program::PlannedStep& planned, int64_t steps);

}  // namespace weft::report
