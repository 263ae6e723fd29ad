// Measured and predicted times of a step's collectives and messages to other ranks, for `weft explain --comm`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/table.h"
#include "weft/graph/collective.h"
#include "weft/passes/pipeline.h"
#include "weft/plan/plan.h"
#include "weft/runtime/executor.h"

namespace weft::report {

struct CollectiveProfile {
  NodeId node;
  std::string tensors;
  std::string algorithm = {};
  std::string kind = kAllReduce;  // the name of its op
  int peer = -1;                  // of a message: the other rank
  int64_t bytes = 0;              // of one rank's operands; of a message
  double starts_at = 0;           // seconds from the beginning of the step
  double start_seconds = 0;       // that the step spends on beginning it,
  double hidden_seconds = 0;      // on other nodes until it waits, be it in the next step,
  double wait_seconds = 0;        // and on waiting
  double took_seconds = 0;        // from start to end in the last step; of a message until it had been waited for
  // The same as the passes predict it that chose buckets and places (the cost model), each exchange behind the one
  // before it on the link.
  double predicted_seconds = 0, predicted_hidden_seconds = 0, predicted_wait_seconds = 0;

  bool is_message() const { return peer >= 0; }
};

/// The collectives in the order in which they start. `profile` is one run of the plan. An all-reduce, `send` or
/// `receive` that the planner left whole waits at once.
std::vector<CollectiveProfile> profile_collectives(const Graph& graph, const Plan& plan, const Profile& profile,
                                                   const passes::Ranks& ranks, const CostModel& costs);

/// A row for each.
Table collectives_rows(const std::vector<CollectiveProfile>& collectives);

/// Lines with the step's total time for them and its bound: computing, or the time of the links
/// for all bytes. `step` is the step's name in the text.
std::string exchange_summary(const std::vector<CollectiveProfile>& collectives, double step_seconds,
                             const passes::Ranks& ranks, std::string_view step = "step");

/// The rows and the lines.
std::string collectives_table(const std::vector<CollectiveProfile>& collectives, double step_seconds,
                              const passes::Ranks& ranks, std::string_view step = "step");

}  // namespace weft::report
