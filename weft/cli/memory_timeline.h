// What stands in a plan's arena while each step runs, for `weft explain`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/plan/plan.h"

namespace weft::cli {

/// A tensor in the arena during one step.
struct LiveTensor {
  std::string name;
  std::string type;  // "f32[64,3,32,32]"
  int64_t bytes = 0;
  std::string made_by, last_read_by;  // node names
};

/// The tensors that stand in the arena while plan.steps[step] runs, largest first. Values that share memory (views,
/// in-place results) count once, under the name of the first; the step's workspace comes as "(workspace)".
std::vector<LiveTensor> live_tensors(const Graph& graph, const Plan& plan, int step);

/// A bar per group of steps, the peak marked: at most `rows` lines.
std::string draw_timeline(const Graph& graph, const Plan& plan, int rows);

}  // namespace weft::cli
