// A compiled step as a simulation sees it: what a rank computes, in order, and the collectives that it begins and waits
// for in between. From the graph and the plan of compile(), so that buckets, sharded states and deferred updates are
// those that weft would run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/compile/compile.h"
#include "weft/machines/roofline.h"
#include "weft/simulate/collective_cost.h"

namespace weft::simulate {

struct StepItem {
  enum class Kind { compute, begin, wait };
  Kind kind = Kind::compute;
  std::string name = {};     // of the node
  std::string work = {};     // its class: "convolutions, forward"
  double seconds = 0;        // compute
  int collective = -1;       // begin and wait: index into StepProgram::collectives
  bool is_next_run = false;  // a wait for what the run before this one began, with all that depends on it
  /// What only the last of several accumulated batches computes.
  bool is_update() const;
};

struct StepCollective {
  Collective kind = Collective::all_reduce;
  double bytes = 0;  // of the whole tensors
  std::string tensors = {};
  bool is_of_last_batch = true;  // of several that are accumulated; else of each of them
};

struct StepProgram {
  std::vector<StepItem> items;  // in order; compute between two others may be joined
  std::vector<StepCollective> collectives;
  double compute_seconds = 0;  // of one batch
  double flops = 0;
  double state_bytes = 0, arena_bytes = 0, batch_bytes = 0;  // of memory, as planned
  double total_bytes() const { return state_bytes + arena_bytes + batch_bytes; }
  /// That a rank computes in a step of so many accumulated batches.
  double seconds_of(int batches) const;
};

/// Times of nodes are those of `costs`. `ranks`: of the run, to know the sizes of what is gathered.
StepProgram step_program(const CompiledStep& step, const CostModel& costs, int ranks);

/// Seconds by class of work, the largest first.
std::vector<std::pair<std::string, double>> seconds_by_work(const StepProgram& program);

}  // namespace weft::simulate
