// What the collectives of a step took beside what was predicted, for `weft explain --comm`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/passes/pipeline.h"
#include "weft/plan/plan.h"
#include "weft/runtime/executor.h"

namespace weft::cli {

struct CollectiveProfile {
  std::string tensors;
  std::string algorithm = {};
  bool gathers = false;  // the parts of all ranks; else they are reduced
  DType dtype = DType::f32;
  int64_t bytes = 0;             // of one rank's operands
  double starts_at = 0;          // seconds from the beginning of the step
  double start_seconds = 0;      // that the step spends on beginning it,
  double hidden_seconds = 0;     // on other nodes until it waits,
  double wait_seconds = 0;       // and on waiting
  double predicted_seconds = 0;  // from start to end, as the planner assumed
};

/// In the order in which they start. `profile` of one run of the plan. An all-reduce that the planner has left whole
/// waits at once.
std::vector<CollectiveProfile> profile_collectives(const Graph& graph, const Plan& plan, const Profile& profile,
                                                   const passes::Ranks& ranks);

/// One row each, and a line with what the step spent on all of them.
std::string collectives_table(const std::vector<CollectiveProfile>& collectives, double step_seconds);

}  // namespace weft::cli
