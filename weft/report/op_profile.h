// Measured time against planned work and against the limits of the machine, per node, op and class of op, for `weft
// explain`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/table.h"
#include "weft/device/machine_rates.h"
#include "weft/plan/plan.h"
#include "weft/runtime/executor.h"

namespace weft::report {

struct OpProfile {
  std::string name;      // of the node; empty where several are summed
  std::string op_class;  // op_class.h
  std::string op, kernel;
  std::string dtype;  // the narrowest floating type among operands and results
  std::vector<std::string> declined;
  int64_t calls = 1;
  double seconds = 0;  // per step
  int64_t flops = 0, bytes = 0;
  double floor_seconds = 0;         // MachineRates::floor
  double memory_floor_seconds = 0;  // the part of it that memory sets

  double seconds_above_floor() const { return seconds - floor_seconds; }
};

/// The median of each node's time per run over profiles of one plan, as one profile: a step that other programs slowed
/// does not count.
Profile median_profile(const std::vector<Profile>& profiles);

/// One entry per planned step that runs a kernel; the one furthest above its floor comes first. `calls`: runs of the
/// graph per step.
std::vector<OpProfile> profile_nodes(const Graph& graph, const Plan& plan, const Profile& profile,
                                     const MachineRates& rates, int64_t calls = 1);
/// The entries of both, in the same order.
std::vector<OpProfile> merged(std::vector<OpProfile> one, const std::vector<OpProfile>& other);
/// Summed per (op, type, kernel), in the same order.
std::vector<OpProfile> sum_by_kernel(const std::vector<OpProfile>& nodes);
/// Summed per class of op, in the same order; op, kernel and type are empty.
std::vector<OpProfile> sum_by_class(const std::vector<OpProfile>& nodes);

/// A table of at most `rows` entries with shares of the total time and of the floor.
Table profile_table(const std::vector<OpProfile>& entries, size_t rows);
/// Without floors, of a run on which no machine's rates bear: the longest first.
Table time_table(std::vector<OpProfile> entries, size_t rows);
/// The same of classes, with a last line for all of them.
Table class_table(const std::vector<OpProfile>& classes);

/// "2 threads of this machine, measured in 0.4 s: 476 GFLOP/s in f32 (...), ..."
std::string describe(const MachineRates& rates);

}  // namespace weft::report
