// Measured time beside planned work, per node and per op, for `weft explain`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/plan/plan.h"
#include "weft/runtime/executor.h"

namespace weft::cli {

struct OpProfile {
  std::string name;  // of the node; empty where several are summed
  std::string op, kernel;
  std::string dtype;  // the narrowest floating type among operands and results
  std::vector<std::string> declined;
  int64_t calls = 1;
  double seconds = 0;  // per step
  int64_t flops = 0, bytes = 0;
};

/// One entry per planned step that runs a kernel, slowest first. `calls`: how often the graph runs in a step.
std::vector<OpProfile> profile_nodes(const Graph& graph, const Plan& plan, const Profile& profile, int64_t calls = 1);
/// The entries of both, slowest first.
std::vector<OpProfile> merged(std::vector<OpProfile> one, const std::vector<OpProfile>& other);
/// Summed per (op, type, kernel), slowest first.
std::vector<OpProfile> sum_by_kernel(const std::vector<OpProfile>& nodes);
/// A table of at most `rows` entries with shares of the total time.
std::string profile_table(const std::vector<OpProfile>& entries, size_t rows);

}  // namespace weft::cli
